"""The codec of report frames: what goes in comes out, anything else is refused and never crashes."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reach.wire import frames

KEYS = st.text(alphabet="abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=32)
VALUES = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=60)
FIELDS = st.dictionaries(KEYS, VALUES, max_size=8)


@given(st.lists(FIELDS, max_size=6), st.integers(1, 40))
def test_frames_survive_any_cut_of_the_stream(sent: list[dict[str, str]], step: int) -> None:
    stream = b"".join(frames.encode(fields) for fields in sent)
    decoder = frames.Decoder()
    received = [frame for at in range(0, len(stream), step) for frame in decoder.feed(stream[at : at + step])]
    assert received == sent


def test_a_file_name_that_is_not_utf8_survives() -> None:
    fields = {"file": b"/tmp/\xff.py".decode("utf-8", "surrogateescape")}
    assert frames.Decoder().feed(frames.encode(fields)) == [fields]


@given(st.binary(max_size=300))
def test_any_bytes_give_frames_or_a_frame_error(data: bytes) -> None:
    try:
        received = frames.Decoder().feed(data)
    except frames.FrameError:
        return
    assert all(isinstance(key, str) and isinstance(value, str) for frame in received for key, value in frame.items())


@given(st.binary(max_size=200))
def test_what_decodes_encodes_to_the_same_bytes(body: bytes) -> None:
    try:
        fields = frames.decode(body)
    except frames.FrameError:
        return
    assert frames.decode(frames.encode(fields)[2:]) == fields


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\x01a\x00\x05abc", id="value cut short"),
        pytest.param(b"\x05ab", id="key cut short"),
        pytest.param(b"\x01a\x00\x01x\x01a\x00\x01y", id="key twice"),
        pytest.param(b"\x00\x00\x01x", id="empty key"),
        pytest.param(b"\x01A\x00\x01x", id="capital letter"),
        pytest.param(b"\x01", id="length without content"),
        pytest.param(b"\x01a\x00", id="half a length"),
        pytest.param(bytes(4097), id="too long"),
    ],
)
def test_malformed_bodies_are_refused(body: bytes) -> None:
    with pytest.raises(frames.FrameError):
        frames.decode(body)


def test_more_than_sixteen_fields_are_refused_and_sixteen_are_not() -> None:
    sixteen = {"k" * size: "" for size in range(1, 17)}
    assert frames.decode(frames.encode(sixteen)[2:]) == sixteen
    with pytest.raises(frames.FrameError, match="at most 16"):
        frames.encode({**sixteen, "z": ""})
    with pytest.raises(frames.FrameError, match="at most 16"):
        frames.decode(frames.encode(sixteen)[2:] + b"\x01z\x00\x00")


def test_the_length_limit_holds_to_the_byte() -> None:
    largest = "x" * (frames.MAX_FRAME - 4)
    assert frames.decode(frames.encode({"a": largest})[2:]) == {"a": largest}
    with pytest.raises(frames.FrameError):
        frames.encode({"a": largest + "x"})
    with pytest.raises(frames.FrameError):
        frames.Decoder().feed(b"\x10\x01")


def test_clip_cuts_between_characters() -> None:
    assert frames.clip("ab", 4) == "ab"
    assert frames.clip("€€", 4) == "€"


def test_importing_the_codec_imports_nothing_else() -> None:
    code = (
        "import sys\nbefore = set(sys.modules)\nimport agent_reach.wire.frames\n"
        "print(sorted(set(sys.modules) - before))"
    )
    ran = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['__future__', 'agent_reach', 'agent_reach.wire', 'agent_reach.wire.frames']"
