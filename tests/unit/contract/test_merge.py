from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from agent_reach.contract.check import check
from agent_reach.contract.merge import flatten, overlay, overlay_all
from agent_reach.contract.nodes import Doc, Map
from agent_reach.contract.read import read
from agent_reach.contract.sink import Sink
from unit.contract.support import HOME, loaded, refusal, refused

if TYPE_CHECKING:
    from agent_reach.contract.model import Contract

DOC = Doc("reach.yaml", "/srv/reach.yaml", "/srv")
EMPTY = Map(DOC, 1, 1, "", {})
NAMES = st.sampled_from("ABCD")


def plain(contract: Contract) -> dict[str, object]:
    """Return what a contract grants, without the lines."""
    return {
        "files": [(grant.path, grant.mode) for grant in contract.files],
        "env": [(grant.name, grant.default) for grant in contract.env],
        "network": [(rule.host, rule.port, rule.protocol) for rule in contract.network],
        "commands": [grant.name for grant in contract.commands],
        "limits": sorted((name, limit.value) for name, limit in contract.limits),
        "name": contract.identity.name,
        "roles": contract.identity.roles,
    }


@st.composite
def layers(draw: st.DrawFn) -> dict[str, object]:
    """One holder of sections, as it would be written."""
    layer: dict[str, object] = {}
    resources: dict[str, object] = {}
    if draw(st.booleans()):
        names = draw(st.lists(NAMES, unique=True))
        value = draw(st.sampled_from("xyz"))
        listed: object = [{"name": name, "default": value} for name in names]
        resources["env"] = draw(st.sampled_from([listed, dict.fromkeys(names, value)]))
    if draw(st.booleans()):
        modes = draw(st.dictionaries(st.sampled_from(["/a", "/b"]), st.sampled_from(["r", "w", "a"])))
        resources["files"] = [{"path": path, "mode": mode} for path, mode in modes.items()]
    if draw(st.booleans()):
        ports = draw(st.lists(st.sampled_from([1, 2, 3]), unique=True))
        resources["network"] = {"allow_outbound": [{"host": "h.x", "port": port} for port in ports]}
    if draw(st.booleans()):
        resources["commands"] = draw(st.lists(st.sampled_from(["git", "ls"]), unique=True))
    if resources:
        layer["resources"] = resources
    if draw(st.booleans()):
        layer["limits"] = draw(
            st.fixed_dictionaries({}, optional={"wall": st.just("5s"), "cpus": st.sampled_from([1, 2])})
        )
    if draw(st.booleans()):
        layer["identity"] = draw(st.fixed_dictionaries({"name": NAMES}, optional={"roles": st.just(["r"])}))
    if draw(st.booleans()):
        layer["drop"] = {"env": draw(st.lists(NAMES, unique=True, max_size=2))}
    return layer


def holder(layer: dict[str, object], sink: Sink) -> Map:
    root = read(json.dumps(layer).encode(), DOC, sink)
    assert isinstance(root, Map)
    return flatten(root, sink)


def resolved(node: object, sink: Sink) -> dict[str, object]:
    assert isinstance(node, Map)
    result = plain(check(node, HOME, sink, complete=False))
    assert not sink.findings
    return result


@given(layers(), layers(), layers())
def test_laying_over_is_associative(
    first: dict[str, object], second: dict[str, object], third: dict[str, object]
) -> None:
    sink = Sink()
    a, b, c = holder(first, sink), holder(second, sink), holder(third, sink)
    left = overlay(overlay(a, b, sink), c, sink)
    right = overlay(a, overlay(b, c, sink), sink)
    assert resolved(left, sink) == resolved(right, sink)


@given(layers())
def test_nothing_is_neutral_on_both_sides(layer: dict[str, object]) -> None:
    sink = Sink()
    own = holder(layer, sink)
    alone = resolved(own, sink)
    assert resolved(overlay_all([own], EMPTY, sink), sink) == alone
    assert resolved(overlay(own, EMPTY, sink), sink) == alone


@given(layers())
def test_a_layer_over_itself_changes_nothing(layer: dict[str, object]) -> None:
    sink = Sink()
    own = holder({name: part for name, part in layer.items() if name != "drop"}, sink)
    assert resolved(overlay(own, own, sink), sink) == resolved(own, sink)


@given(st.lists(layers(), max_size=5))
def test_variables_follow_a_dictionary(stack: list[dict[str, object]]) -> None:
    """The order and the values are those of a dict that each layer drops from and then updates."""
    sink = Sink()
    expected: dict[str, object] = {}
    for layer in stack:
        drop = layer.get("drop", {})
        assert isinstance(drop, dict)
        for name in drop.get("env", []):
            expected.pop(name, None)
        resources = layer.get("resources", {})
        assert isinstance(resources, dict)
        env = resources.get("env", {})
        expected.update(env if isinstance(env, dict) else {entry["name"]: entry["default"] for entry in env})
    found = resolved(overlay_all([holder(layer, sink) for layer in stack], EMPTY, sink), sink)
    assert found["env"] == list(expected.items())


def test_merge_keys_merge_deeply() -> None:
    contract = loaded(
        "base_one: &one\n"
        "  resources:\n"
        "    files: [{path: /a, mode: r}, {path: /b, mode: r}]\n"
        "    network: {allow_outbound: [{host: a.b, port: 1}]}\n"
        "  limits: {wall: 5s}\n"
        "dev:\n"
        "  <<: *one\n"
        "  resources:\n"
        "    files: [{path: /b, mode: rw}, {path: /c, mode: w}]\n"
        "  limits: {cpus: 1}\n",
        "dev",
    )
    assert [(grant.path, grant.mode) for grant in contract.files] == [("/a", "r"), ("/b", "rw"), ("/c", "w")]
    assert [rule.host for rule in contract.network] == ["a.b"]
    assert dict(contract.limits).keys() == {"wall", "cpus"}


def test_of_several_merged_blocks_the_earlier_wins_as_in_yaml() -> None:
    text = "x-a: &a {MODE: a, ONLY_A: '1'}\nx-b: &b {MODE: b, ONLY_B: '1'}\nresources:\n  env: {<<: [*a, *b]}\n"
    assert {grant.name: grant.default for grant in loaded(text).env} == {"MODE": "a", "ONLY_A": "1", "ONLY_B": "1"}


def test_merge_keys_in_entries_and_within_merged_blocks() -> None:
    text = (
        "x-rule: &rule {port: 443, protocol: https}\n"
        "x-more: &more\n  <<: *rule\n  host: a.b\n"
        "resources:\n  network:\n    allow_outbound:\n      - {<<: *rule, host: c.d}\n      - *more\n"
    )
    found = [(rule.host, rule.port, rule.protocol) for rule in loaded(text).network]
    assert found == [("c.d", 443, "https"), ("a.b", 443, "https")]


def test_a_merge_key_takes_mappings_only() -> None:
    assert refusal("dev: {<<: text, resources: {}}\n", "dev").code == "E_TYPE"
    assert refusal("x-a: &a [1]\ndev: {<<: *a, resources: {}}\n", "dev").code == "E_TYPE"


def test_a_nearer_entry_replaces_the_whole_farther_one() -> None:
    text = (
        "resources: {env: [{name: A, source: 'env://A', required: true}]}\n"
        "profiles: {dev: {resources: {env: [{name: A, default: x}]}}}\n"
    )
    (grant,) = loaded(text, "dev").env
    assert (grant.source, grant.default, grant.required) == ("", "x", False)


def test_other_lists_are_replaced() -> None:
    text = "identity: {roles: [a]}\nprofiles: {dev: {identity: {roles: [b]}}}\n"
    assert loaded(text, "dev").identity.roles == ("b",)


def test_drop() -> None:
    text = (
        "resources:\n"
        "  env: {A: x, B: y}\n"
        "  files: [{path: ./out/, mode: w}, {path: /b}]\n"
        "  network: {allow_outbound: [{host: a.b, port: 1}, {host: a.b, port: 2}]}\n"
        "  commands: [git, ls]\n"
        "profiles:\n"
        "  dev:\n"
        "    drop: {env: [A], files: [out], allow_outbound: ['A.b:1'], commands: [git]}\n"
    )
    contract = loaded(text, "dev")
    assert [grant.name for grant in contract.env] == ["B"]
    assert [grant.path for grant in contract.files] == ["/b"]
    assert [rule.port for rule in contract.network] == [2]
    assert [grant.name for grant in contract.commands] == ["ls"]


def test_a_layer_can_drop_and_grant_anew() -> None:
    text = "resources: {env: {A: x}}\nprofiles: {dev: {drop: {env: [A]}, resources: {env: {A: y}}}}\n"
    assert [grant.default for grant in loaded(text, "dev").env] == ["y"]


def test_a_drop_without_effect_is_a_mistake() -> None:
    text = "resources: {env: {TOKEN: x}}\nprofiles: {dev: {drop: {env: [TOKNE]}}}\n"
    finding = refusal(text, "dev")
    assert (finding.code, finding.line) == ("E_VALUE", 3)
    assert "`TOKNE` is not there" in finding.message


def test_drop_has_its_own_keys_and_types() -> None:
    assert refusal("profiles: {dev: {drop: {envs: [A]}}}\n", "dev").code == "E_UNKNOWN_KEY"
    assert refusal("profiles: {dev: {drop: [A]}}\n", "dev").code == "E_TYPE"
    assert refusal("profiles: {dev: {drop: {env: A}}}\n", "dev").code == "E_TYPE"
    assert refusal("profiles: {dev: {drop: {allow_outbound: [x]}}}\n", "dev").code == "E_VALUE"


def test_a_mapping_over_something_else_is_not_passed_over() -> None:
    findings = refused("base_x: &x {resources: [a]}\ndev: {<<: *x, resources: {env: {A: x}}}\n", "dev")
    assert [(finding.code, finding.line) for finding in findings] == [("E_TYPE", 2)]
