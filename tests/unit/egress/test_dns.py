"""The answerer of DNS queries: right answers to right queries, and no exception for any bytes."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_reach.egress import dns


def query(name: bytes = b"\x03api\x07Example\x03com\x00", kind: int = dns.A, **header: int) -> bytes:
    head = {"ident": 0xBEEF, "flags": 0x0100, "questions": 1, "answers": 0, "authority": 0, "additional": 0} | header
    return b"".join(value.to_bytes(2, "big") for value in head.values()) + name + kind.to_bytes(2, "big") + b"\x00\x01"


def parsed(message: bytes) -> dns.Query:
    result = dns.parse(message)
    assert isinstance(result, dns.Query)
    return result


def rcode(message: bytes | dns.Query | None) -> int:
    assert isinstance(message, bytes)
    return message[3] & 0x0F


def test_a_query_is_read() -> None:
    found = parsed(query())
    assert (found.ident, found.name, found.kind) == (0xBEEF, "api.Example.com", dns.A)
    assert found.question == query()[12:]


def test_an_edns_query_is_read_like_any_other() -> None:
    assert parsed(query(additional=1) + bytes.fromhex("0000291000000000000000")).name == "api.Example.com"


def test_an_answer_repeats_the_question_and_holds_the_addresses_of_the_family() -> None:
    asked = parsed(query())
    four, six = bytes((198, 18, 1, 0)), b"\xfd\x19\x80\x00" + bytes(12)
    answer = dns.answer(asked, dns.NOERROR, (four, six))
    assert answer[:2] == b"\xbe\xef"
    assert int.from_bytes(answer[2:4], "big") == 0x8180
    assert answer[4:12] == bytes((0, 1, 0, 1, 0, 0, 0, 0))
    assert answer[12:].startswith(asked.question)
    assert answer.endswith(b"\x00\x04" + four)
    assert dns.answer(parsed(query(kind=dns.AAAA)), dns.NOERROR, (four, six)).endswith(b"\x00\x10" + six)


@pytest.mark.parametrize("kind", [12, 15, 16, 33, 64, 65, 255])
def test_other_types_get_an_empty_answer(kind: int) -> None:
    answer = dns.answer(parsed(query(kind=kind)), dns.NOERROR, (bytes(4),))
    assert rcode(answer) == dns.NOERROR
    assert answer[6:8] == b"\x00\x00"


def test_the_longest_name_with_every_address_fits_into_512_bytes() -> None:
    name = (b"\x3f" + b"a" * 63) * 3 + b"\x3d" + b"a" * 61 + b"\x00"
    assert len(dns.answer(parsed(query(name, dns.AAAA)), dns.NOERROR, (bytes(16),) * 4)) <= 512


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(b"\xc0\x0c", id="compression pointer"),
        pytest.param(b"\x3fabc", id="label cut short"),
        pytest.param((b"\x3f" + b"a" * 63) * 4 + b"\x00", id="name too long"),
        pytest.param(b"\x01a" * 200 + b"\x00", id="too many labels"),
        pytest.param(b"\x40" + b"a" * 64 + b"\x00", id="label too long"),
    ],
)
def test_malformed_questions_get_formerr(name: bytes) -> None:
    assert rcode(dns.parse(query(name))) == dns.FORMERR


@pytest.mark.parametrize("name", [b"\x05a\x00b.c\x00", b"\x03a.b\x00", b"\x02\xff\xfe\x00", b"\x02a \x00"])
def test_labels_that_would_make_another_name_have_none(name: bytes) -> None:
    assert parsed(query(name)).name is None


def test_headers() -> None:
    assert dns.parse(query(flags=0x8000)) is None
    assert dns.parse(b"short") is None
    assert dns.parse(query() + bytes(5000)) is None
    assert rcode(dns.parse(query(flags=0x2800))) == dns.NOTIMP
    assert rcode(dns.parse(query(questions=0))) == dns.FORMERR
    assert rcode(dns.parse(query(questions=2))) == dns.FORMERR
    assert rcode(dns.parse(query()[:-2] + b"\x00\x03")) == dns.NOTIMP


def test_the_root_is_no_name() -> None:
    assert parsed(query(b"\x00")).name == ""


@given(st.binary(max_size=600) | st.binary(max_size=300).map(lambda tail: query()[:12] + tail))
@example(query() + b"\x00")
def test_any_bytes_get_an_answer_or_none(message: bytes) -> None:
    found = dns.parse(message)
    if isinstance(found, dns.Query):
        found = dns.answer(found, dns.NXDOMAIN)
    if found is not None:
        assert found[:2] == message[:2]
        assert found[2] & 0x80
        assert len(found) <= 512


@given(st.lists(st.binary(max_size=80), max_size=5), st.integers(1, 30))
def test_messages_survive_any_cut_of_the_stream(messages: list[bytes], step: int) -> None:
    stream, reader = b"".join(map(dns.framed, messages)), dns.Stream()
    received: list[bytes] = []
    for at in range(0, len(stream), step):
        cut = reader.feed(stream[at : at + step])
        assert cut is not None
        received += cut
    assert received == messages


def test_a_stream_that_announces_too_much_ends() -> None:
    assert dns.Stream().feed(b"\xff\xff") is None
