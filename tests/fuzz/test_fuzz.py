"""One invariant a reader: any bytes give what it promises or its own refusal, never another exception.

`./dev fuzz` runs each for longer (`--long`); the short form is part of `./dev test`.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_reach.contract.inline import contract_in
from agent_reach.contract.load import load
from agent_reach.contract.model import Contract
from agent_reach.egress import dns, hostnames, reports
from agent_reach.errors import ContractError, ProviderError
from agent_reach.providers import uri
from agent_reach.wire import frames

SHORT, LONG = 200, 5_000
YAML_PIECES = [
    "version: '1'\n",
    "resources:\n",
    "  files: [",
    "{path: ./x, mode: rw}",
    "  env:\n",
    "    A: {source: vault://a/b#c}\n",
    "    - name: B\n",
    "  network: {allow_outbound: [{host: a.b, port: 1}]}\n",
    "limits: {wall: 5s}\n",
    "dev: {extends: base}\n",
    "base_x: &a {",
    "*a",
    "<<: *a\n",
    "]",
    "}",
    "\t",
    "? ",
    "- ",
    "\u2028",
    "!!python/object:os.system ",
    "&a *a",
]


@pytest.fixture
def examples(long):
    return settings(
        max_examples=LONG if long else SHORT,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


def run(examples, strategy, check):
    """Try a check on many values."""
    examples(given(strategy)(check))()


def test_a_contract_loads_or_is_refused_with_findings(examples, tmp_path):
    def check(data):
        try:
            found = load(str(tmp_path / "reach.yaml"), home="/home/x", data=data)
        except ContractError as refused:
            assert refused.findings
            assert all(finding.code and finding.message for finding in refused.findings)
        else:
            assert isinstance(found, Contract)

    pieces = st.lists(st.sampled_from(YAML_PIECES) | st.text(max_size=8), max_size=14).map("".join)
    run(examples, st.binary(max_size=300) | pieces.map(lambda text: text.encode("utf-8", "surrogatepass")), check)


def test_a_script_holds_a_contract_or_none(examples):
    def check(data):
        try:
            contract_in(b"# /// script\n" + data, "job.py")
        except ContractError as refused:
            assert refused.findings[0].line

    lines = st.lists(st.sampled_from(["# ", "#", "# ///", "x = [", "[tool.reach]", "= 1"]), max_size=12)
    run(examples, st.binary(max_size=200) | lines.map(lambda parts: "\n".join(parts).encode()), check)


def test_a_stream_of_frames_decodes_or_breaks_off(examples):
    def check(chunks):
        decoder = frames.Decoder()
        try:
            for chunk in chunks:
                for fields in decoder.feed(chunk):
                    reports.read(fields)
        except frames.FrameError:
            return

    run(examples, st.lists(st.binary(max_size=200), max_size=8), check)


def test_a_query_is_answered_or_passed_over(examples):
    def check(message):
        query = dns.parse(message)
        if query is not None and not isinstance(query, bytes):
            assert dns.answer(query, 0)[:2] == message[:2]

    header = st.binary(min_size=12, max_size=12)
    labels = st.lists(st.binary(max_size=70).map(lambda label: bytes((len(label),)) + label), max_size=6).map(b"".join)
    run(examples, st.binary(max_size=600) | st.tuples(header, labels, st.binary(max_size=8)).map(b"".join), check)


def test_a_host_has_one_canonical_form_or_none(examples):
    def check(name):
        found = hostnames.canonical(name)
        if found is not None:
            assert found == found.lower() == hostnames.canonical(found)
            assert "\0" not in found

    run(examples, st.text(max_size=80) | st.from_regex(r"[a-zA-Z0-9.\-_]{0,40}\.?", fullmatch=True), check)


def test_a_source_is_a_reference_or_refused(examples):
    def check(text):
        try:
            found = uri.parse(text)
        except (ProviderError, ValueError):
            return
        assert found.scheme

    run(examples, st.text(max_size=60).map("vault://{}".format) | st.text(max_size=60), check)
