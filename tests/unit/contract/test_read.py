from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reach.contract.nodes import Doc, Map, Node, Scalar, Seq
from agent_reach.contract.read import MAX_BYTES, MAX_DEPTH, joined, read
from agent_reach.contract.sink import Sink
from unit.contract.support import VERSION, loaded, refusal, refused

DOC = Doc("reach.yaml", "/srv/reach.yaml", "/srv")


def nodes_of(text: str | bytes) -> tuple[Node | None, Sink]:
    sink = Sink()
    return read(text.encode() if isinstance(text, str) else text, DOC, sink), sink


def test_every_node_knows_where_it_is_written() -> None:
    root, sink = nodes_of("a:\n  - b: 1\n    c: [x, y]\n")
    assert not sink.findings
    assert isinstance(root, Map)
    items = root.entries["a"].value
    assert isinstance(items, Seq)
    entry = items.items[0]
    assert isinstance(entry, Map)
    assert (entry.line, entry.column, entry.key) == (2, 5, "a[0]")
    key = entry.entries["c"].key
    assert (key.line, key.column, key.key) == (3, 5, "a[0].c")
    value = entry.entries["c"].value
    assert isinstance(value, Seq)
    assert [(item.line, item.column, item.key) for item in value.items] == [
        (3, 9, "a[0].c[0]"),
        (3, 12, "a[0].c[1]"),
    ]


def test_quoted_text_is_never_plain() -> None:
    root, _ = nodes_of("a: 1\nb: '1'\nc: \"1\"\nd: |\n  1\n")
    assert isinstance(root, Map)
    plain = {name: entry.value.plain for name, entry in root.entries.items() if isinstance(entry.value, Scalar)}
    assert plain == {"a": True, "b": False, "c": False, "d": False}


def test_an_aliased_node_keeps_the_place_of_its_anchor() -> None:
    root, sink = nodes_of("a: &one [x]\nb: *one\n")
    assert isinstance(root, Map)
    assert root.entries["b"].value is root.entries["a"].value
    assert not sink.findings


def test_byte_order_mark_and_carriage_returns() -> None:
    root, sink = nodes_of(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert isinstance(root, Map)
    assert list(root.entries) == ["a", "b"]
    assert root.entries["b"].key.line == 2
    assert not sink.findings


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("a: *one\n", "E_ALIAS", 1),
        ("a: &one [*one]\n", "E_ALIAS", 1),
        ("a: &one 1\nb: &one 2\n", "E_ALIAS", 2),
        ("a: 1\n--- \nb: 2\n", "E_DOCUMENTS", 2),
        ("a: 1\na: 2\n", "E_DUPLICATE_KEY", 2),
        ("a: {b: 1, b: 1}\n", "E_DUPLICATE_KEY", 1),
        ("a: &a {x: 1}\nb:\n  <<: *a\n  <<: *a\n", "E_DUPLICATE_KEY", 4),
        ("a: !!python/object:os.system x\n", "E_TAG", 1),
        ("a: !!str 1\n", "E_TAG", 1),
        ("a: ! 1\n", "E_TAG", 1),
        ("a: !custom {b: 1}\n", "E_TAG", 1),
        ("? [a, b]\n: 1\n", "E_TYPE", 1),
        ("a: 'open\n", "E_SYNTAX", 2),
        ("a: b\n c: d\n", "E_SYNTAX", 2),
        ("a:\n\tb: 1\n", "E_TAB", 2),
        ("a: [b,\n\tc]\n", "E_TAB", 2),
        ("a: 1\n \t b: 1\n", "E_TAB", 2),
        ("# c\n\t# comment\na: 1\n", "E_TAB", 2),
        (b"a: \xff\n", "E_ENCODING", 1),
        (b"b: 1\na: \xff\n", "E_ENCODING", 2),
        ("a: 1\n".encode("utf-16"), "E_ENCODING", 1),
        ("a: 1\nb: x\0y\n", "E_ENCODING", 2),
        ("a: x\u202ey\n", "E_ENCODING", 1),
        ("a: x\u2028b: 1\n", "E_ENCODING", 1),
        (b"a: " + b"x" * MAX_BYTES, "E_SIZE", 1),
        ("a: " + "[" * 40 + "]" * 40 + "\n", "E_SIZE", 1),
        ("a: [" + "x," * 60_000 + "]\n", "E_SIZE", 1),
    ],
)
def test_what_is_not_one_plain_document_is_refused(text: str | bytes, code: str, line: int) -> None:
    _, sink = nodes_of(text)
    assert [(finding.code, finding.line) for finding in sink.findings] == [(code, line)]


@pytest.mark.parametrize(
    "text",
    [
        "a:\tb\n",  # a tab between key and value indents nothing
        "a: |\n  x\n  \ty\n",  # content of a block text
        'a: "x\n\ty"\n',  # content of a folded text
        "a: [b, # c\n\t\n\t# comment\n  c]\n",
        'a: "\\u202e \\0"\n',  # escaped, so that a reader sees it
        "a: " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1) + "\n",
        "a: &one {x: 1}\nb:\n  <<: *one\n  x: 2\n",
        "%YAML 1.2\n---\na: 1\n...\n",
    ],
)
def test_the_allowed_twins(text: str) -> None:
    root, sink = nodes_of(text)
    assert not sink.findings
    assert isinstance(root, Map)


def test_deep_nesting_does_not_exhaust_the_stack() -> None:
    _, sink = nodes_of("[" * 400_000)
    (finding,) = sink.findings
    assert finding.code in {"E_SIZE", "E_SYNTAX"}  # libyaml has a bound of its own


def test_a_bomb_is_refused_where_it_outgrows_the_bound() -> None:
    lines = ["x-a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"x-{new}: &{new} [{', '.join([f'*{old}'] * 10)}]" for old, new in zip("abcdefg", "bcdefgh", strict=True)]
    finding = refusal("\n".join(lines) + "\nresources: {env: {X: *h}}\n")
    assert finding.code == "E_ALIAS"
    assert "x-e" in finding.key


def test_aliases_within_the_bound_are_taken() -> None:
    contract = loaded("x-a: &a {name: A, default: x}\nresources:\n  env:\n    - *a\n    - {<<: *a, name: B}\n")
    assert [(grant.name, grant.default) for grant in contract.env] == [("A", "x"), ("B", "x")]


def test_all_findings_of_one_pass_in_document_order() -> None:
    findings = refused(
        "resources:\n"
        "  env: {A: *none}\n"
        "  files: [{path: ./x, moed: r}]\n"
        "  network: {allow_outbound: [{host: a.b, port: 70000}]}\n"
        "limits: {wall: 5}\n"
    )
    assert [(finding.line, finding.code) for finding in findings] == [
        (3, "E_ALIAS"),
        (4, "E_UNKNOWN_KEY"),
        (5, "E_VALUE"),
        (6, "E_UNIT"),
    ]


def test_a_control_character_of_the_document_never_reaches_the_message() -> None:
    finding = refusal('"a\\u001b[31mb": 1\n')
    assert "\x1b" not in str(finding)
    assert r"a\x1b[31mb" in finding.message


@given(st.binary(max_size=300))
def test_any_bytes_give_nodes_or_findings(data: bytes) -> None:
    root, sink = nodes_of(data)
    assert root is not None or sink.findings or not data.decode("utf-8-sig", "replace").strip() or b"#" in data


@given(st.text(alphabet="ab:-[]{}&*<>!|'\"# \n\t,?%@", max_size=80))
def test_any_small_document_gives_nodes_or_findings(text: str) -> None:
    nodes_of(text)


def test_names_in_paths() -> None:
    assert joined("", "a") == "a"
    assert joined("a", "b-c") == "a.b-c"
    assert joined("a", "b.c") == "a['b.c']"
    assert joined("env", "GITHUB_*") == "env.GITHUB_*"


def test_version_line_counts() -> None:
    assert VERSION.count("\n") == 1


@pytest.mark.parametrize(
    "text",
    [
        "a:\n\tb: 1\n",
        "a: 1\na: 2\n",
        "a: *x\n",
        "a: 1\n---\nb: 2\n",
        "[" * 5000,
        "a: [b,\n\tc]\n",
        "a: 'x\n\ty'\nb: [1]\n",
    ],
)
def test_the_parser_written_in_python_gives_the_same_codes(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, with_c = nodes_of(text)
    monkeypatch.delattr("yaml.CSafeLoader", raising=False)
    _, without = nodes_of(text)
    here = [(finding.code, finding.line) for finding in without.findings]
    assert here == [(finding.code, finding.line) for finding in with_c.findings] or text.startswith("[[")
