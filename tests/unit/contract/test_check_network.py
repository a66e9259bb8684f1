from __future__ import annotations

import pytest

from agent_reach.contract.model import NetRule, Origin
from unit.contract.support import PATH, loaded, refusal, refused


def rule(text: str) -> str:
    return f"resources:\n  network:\n    allow_outbound:\n      - {text}\n"


def test_a_rule() -> None:
    (found,) = loaded(rule("{host: DB.Internal., port: 5432}")).network
    assert found == NetRule("db.internal", 5432, "tcp", Origin(PATH, 5))


@pytest.mark.parametrize("protocol", ["tcp", "http", "https"])
def test_protocols(protocol: str) -> None:
    (found,) = loaded(rule(f"{{host: a.b, port: 443, protocol: {protocol}}}")).network
    assert found.protocol == protocol


@pytest.mark.parametrize(
    ("text", "code", "key"),
    [
        ("{host: a.b}", "E_MISSING", ""),
        ("{port: 1}", "E_MISSING", ""),
        ("{host: a.b, port: 0}", "E_VALUE", ".port"),
        ("{host: a.b, port: 65536}", "E_VALUE", ".port"),
        ("{host: a.b, port: -1}", "E_VALUE", ".port"),
        ("{host: a.b, port: 99999999999999999999999}", "E_TYPE", ".port"),
        ("{host: a.b, port: '443'}", "E_TYPE", ".port"),
        ("{host: a.b, port: 0443}", "E_TYPE", ".port"),
        ("{host: a.b, port: 443.0}", "E_TYPE", ".port"),
        ("{host: a.b, port: https}", "E_TYPE", ".port"),
        ("{host: a.b, port: true}", "E_TYPE", ".port"),
        ("{host: a.b, port: 1, protocol: tpc}", "E_VALUE", ".protocol"),
        ("{host: 10, port: 1}", "E_TYPE", ".host"),
        ("{host: '127.1', port: 1}", "E_HOST", ".host"),
        ("{host: a.b, prot: 1, port: 1}", "E_UNKNOWN_KEY", ".prot"),
        ("a.b:443", "E_TYPE", ""),
        # Planned: refused with a code of their own, never passed over.
        ("{host: a.b, port: 53, protocol: udp}", "E_NOT_YET", ".protocol"),
        ("{host: a.b, port: [80, 443]}", "E_NOT_YET", ".port"),
        ("{host: a.b, port: 80-90}", "E_NOT_YET", ".port"),
        ("{host: a.b, port: '*'}", "E_NOT_YET", ".port"),
        ("{host: '*', port: 443}", "E_NOT_YET", ".host"),
        ("{host: '*.a.b', port: 443}", "E_NOT_YET", ".host"),
        ("{host: 10.0.0.0/8, port: 443}", "E_NOT_YET", ".host"),
        ("{host: '::1', port: 443}", "E_NOT_YET", ".host"),
        ("{host: a.b, port: 443, methods: [GET]}", "E_NOT_YET", ".methods"),
        ("{host: a.b, port: 443, paths: [/x]}", "E_NOT_YET", ".paths"),
        ("{host: a.b, port: 443, sni: any}", "E_NOT_YET", ".sni"),
        ("{host: a.b, port: 443, inject: {header: X}}", "E_NOT_YET", ".inject"),
        ("{host: a.b, port: 443, auth: jwt}", "E_NOT_YET", ".auth"),
    ],
)
def test_what_cannot_be_held_is_refused(text: str, code: str, key: str) -> None:
    finding = refusal(rule(text))
    assert (finding.code, finding.key) == (code, f"resources.network.allow_outbound[0]{key}")


def test_the_same_host_in_two_spellings_is_one_rule() -> None:
    findings = refused(rule("{host: a.b, port: 1}\n      - {host: A.b., port: 1}"))
    assert [finding.code for finding in findings] == ["E_DUPLICATE_ENTRY"]
    assert len(loaded(rule("{host: a.b, port: 1}\n      - {host: a.b, port: 2}")).network) == 2


def test_a_text_is_not_a_list_of_letters() -> None:
    finding = refusal("resources: {network: {allow_outbound: 'a.b:443'}}\n")
    assert finding.code == "E_TYPE"
    assert "expected a list" in finding.message


def test_nothing_allowed_is_nothing_granted() -> None:
    assert loaded("resources: {network: {allow_outbound: []}}\n").network == ()
    assert loaded("resources: {network: {}}\n").network == ()
