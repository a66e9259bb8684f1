"""Every YAML fragment of the first source document, with the version added where it has none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_reach.contract.load import load
from agent_reach.errors import ContractError

if TYPE_CHECKING:
    from agent_reach.contract.model import Contract

SEEDS = os.path.join(os.path.dirname(__file__), "seeds")


def seed(name: str, profile: str | None = None) -> Contract:
    return load(os.path.join(SEEDS, f"{name}.yaml"), profile=profile, home="/home/alice")


def test_there_are_ten_fragments() -> None:
    assert len(os.listdir(SEEDS)) == 10


def test_data_sync_bot_section_2_2() -> None:
    contract = seed("data_sync_bot")
    assert contract.identity.name == "data-sync-bot"
    assert contract.identity.roles == ("prod-reader", "log-writer")
    assert [(grant.path, grant.mode, grant.required, grant.directory) for grant in contract.files] == [
        ("/etc/secrets/db-prod.key", "rb", True, False),
        ("/tmp/output", "w", False, True),
    ]
    host, level = contract.env
    assert (host.name, host.source, host.required) == ("DB_HOST", "vault://prod/db/host", True)
    assert (level.name, level.source, level.default, level.required) == ("LOG_LEVEL", "", "INFO", False)
    assert [(rule.host, rule.port, rule.protocol) for rule in contract.network] == [
        ("prod-db.internal", 5432, "tcp"),
        ("logging.svc.cluster.local", 8080, "http"),
    ]


def test_sync_users_dev_inherits_the_log_directory_and_the_required_name() -> None:
    contract = seed("sync_users", "dev")
    assert contract.profile == "dev"
    assert contract.identity.name == "user-sync-dev"
    assert contract.identity.type == "service-account"
    (log,) = contract.files
    assert (log.path, log.mode, log.required, log.directory) == ("/tmp/log", "w", True, True)
    env = {grant.name: grant for grant in contract.env}
    assert {name: grant.default for name, grant in env.items()} == {
        "DB_PORT": "5432",
        "DB_NAME": None,
        "DB_HOST": "localhost",
        "DB_USER": "devuser",
        "DB_PASS": "devpass",
    }
    assert env["DB_NAME"].required
    assert not env["DB_PORT"].required
    assert [(rule.host, rule.port) for rule in contract.network] == [("localhost", 5432)]


def test_sync_users_prod_takes_its_secrets_from_vault() -> None:
    contract = seed("sync_users", "prod")
    assert contract.identity.name == "user-sync-prod"
    assert contract.identity.roles == ("prod-db-reader",)
    assert [(grant.path, grant.mode) for grant in contract.files] == [
        ("/tmp/log", "w"),
        ("/etc/secrets/user-sync-db.key", "rb"),
    ]
    secrets = [grant for grant in contract.env if grant.source]
    assert [grant.source for grant in secrets] == [
        "vault://prod/user-sync/db-host",
        "vault://prod/user-sync/db-user",
        "vault://prod/user-sync/db-pass",
    ]
    assert all(grant.required for grant in secrets)
    assert [(rule.host, rule.port) for rule in contract.network] == [("user-db.prod.svc.cluster.local", 5432)]


def test_sync_users_without_a_profile_asks_for_one() -> None:
    with pytest.raises(ContractError, match=r"choose a profile: dev, prod \(--env dev\)"):
        seed("sync_users")


def test_an_anchor_block_is_no_profile() -> None:
    with pytest.raises(ContractError, match="`base_config` is a block for anchors"):
        seed("sync_users", "base_config")


def test_notebook_maps_a_bucket_to_a_path() -> None:
    (grant,) = seed("notebook").files
    assert (grant.path, grant.mode) == ("/data/users.csv", "rb")
    assert grant.source == "s3://prod-data-bucket/users/part-00000.csv"


def test_deploy_reaches_the_cluster_only() -> None:
    contract = seed("deploy", "prod")
    assert [(rule.host, rule.port, rule.protocol) for rule in contract.network] == [("k8s-api.internal", 443, "https")]
    (config,) = contract.files
    assert (config.path, config.mode, config.required) == ("/root/.kube/config", "rb", True)
    assert contract.commands == ()


def test_edge_device_reads_sensors_and_appends_to_its_log() -> None:
    contract = seed("edge_device")
    assert contract.identity.name == "sensor-uploader-rpi4"
    assert [(grant.path, grant.mode, grant.directory) for grant in contract.files] == [
        ("/home/pi/sensors", "r", True),
        ("/var/log/sensor-upload.log", "a", False),
    ]
    assert [(rule.host, rule.port, rule.protocol) for rule in contract.network] == [
        ("iot-hub.example.com", 443, "https")
    ]


def test_options() -> None:
    assert seed("option_pycache").options.disable_pycache
    assert seed("option_isolation").options.context_isolation
    assert seed("option_start_method").options.multiprocessing_start_method == "fork"


def test_a_default_without_source_is_the_value() -> None:
    (zone,) = seed("env_timezone").env
    assert (zone.name, zone.source, zone.default, zone.required) == ("TZ", "", "UTC", False)


def test_a_certificate_file_is_delivered_as_a_path() -> None:
    certificate, mode = seed("env_postgres_tls").env
    assert certificate.source == "file:///etc/ssl/certs/ca-bundle.crt"
    assert certificate.deliver == "file"
    assert (mode.default, mode.deliver) == ("verify-full", "value")
