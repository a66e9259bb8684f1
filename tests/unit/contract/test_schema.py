from __future__ import annotations

import os

import jsonschema
import pytest
import yaml

from agent_reach.contract.schema import schema
from agent_reach.contract.template import starting_contract
from unit.contract.support import loaded

SEEDS = os.path.join(os.path.dirname(__file__), "seeds")


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema())


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("name", sorted(os.listdir(SEEDS)))
def test_the_seeds_fit(name: str, validator: jsonschema.Draft202012Validator) -> None:
    with open(os.path.join(SEEDS, name), encoding="utf-8") as file:
        validator.validate(yaml.safe_load(file))


def test_the_starting_contract_fits(validator: jsonschema.Draft202012Validator) -> None:
    validator.validate(yaml.safe_load(starting_contract()))


GOOD = [
    "resources: {env: {A: x, B: 5, C: {source: 'env://C'}, D: {}}}",
    "resources: {env: [{name: A}], commands: [git, {name: ls, with: [perl]}]}",
    "resources: {files: [{path: /x, mode: rw, required: true}]}",
    "limits: {wall: 5m, memory: {max: 1GiB, enforced: true}, swap: 0, cpus: 0.5, io: {read: 1MiB/s}}",
    "profiles: {dev: {extends: prod}, prod: {extends: [../x.yaml#y], drop: {env: [A]}}}",
    "dev: {sandbox: {minimum: full}}\nx-a: [1]\nbase_x: 5",
    "targets: {t: {project: {read: code}}}",
    "allowed_files: [{path: /x}]",
]
BAD = [
    "resuorces: {env: {}}",
    "resources: {env: {A: 1.5}}",
    "resources: {env: [{default: x}]}",
    "resources: {files: [/x]}",
    "resources: {files: [{path: /x, mode: raed}]}",
    "resources: {network: {allow_outbound: [{host: a.b}]}}",
    "resources: {network: {allow_outbound: [{host: a.b, port: 0}]}}",
    "resources: {network: {allow_outbound: 'a.b:1'}}",
    "resources: {sockets: [/x]}",
    "limits: {wall: 5}",
    "limits: {memory: 512M}",
    "limits: {processes: 0}",
    "options: {strict: true}",
    "packages: {requirements: x}",
    "profiles: {dev: {limits: {wall: 5}}}",
]


@pytest.mark.parametrize("text", GOOD)
def test_what_loads_fits(text: str, validator: jsonschema.Draft202012Validator) -> None:
    validator.validate(yaml.safe_load(f'version: "1.0"\n{text}\n'))
    if "extends" not in text:
        loaded(f"{text}\n", "dev" if "dev:" in text else None)


@pytest.mark.parametrize("text", BAD)
def test_what_does_not_load_does_not_fit(text: str, validator: jsonschema.Draft202012Validator) -> None:
    assert not validator.is_valid(yaml.safe_load(f'version: "1.0"\n{text}\n'))
    assert not validator.is_valid(yaml.safe_load(text.partition("\n")[0]))
