"""Frames: what goes over the pipe of a worker."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlcompiler.runtime.frames import MAX_DATA_BYTES, Decoder, Frame, FrameError, encode

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)  # fmt: skip


@pytest.mark.campaign
@settings(max_examples=40)
@given(st.dictionaries(st.text(), JSON), st.binary(), st.integers(1, 50))
def test_a_frame_arrives_as_it_was_in_pieces_of_any_size(header, data, size):
    sent = encode(Frame(header, data)) * 2
    decoder, received = Decoder(), []
    for start in range(0, len(sent), size):
        decoder.feed(sent[start : start + size])
        while (frame := decoder.take()) is not None:
            received.append(frame)
    assert received == [Frame(header, data)] * 2


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), b"bytes", {1: {2}}])
def test_what_is_not_json_is_not_sent(value):
    with pytest.raises(FrameError, match="not JSON"):
        encode(Frame({"value": value}))


def framed(text):
    return struct.pack(">IQ", len(text), 0) + text


@pytest.mark.parametrize(
    "sent",
    [
        framed(b"{"),
        framed(b"[]"),
        framed(b'{"x": NaN}'),
        framed(b'{"x": 1' + b"0" * 5000 + b"}"),
        framed(b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        framed(b"\xff\xfe"),
        struct.pack(">IQ", 0xFFFFFFFF, 0),
        struct.pack(">IQ", 2, MAX_DATA_BYTES + 1),
    ],
    ids=["torn", "list", "NaN", "5000 digits", "deep", "no text", "huge header", "huge data"],
)
def test_what_is_no_frame_is_refused(sent):
    decoder = Decoder()
    decoder.feed(sent)
    with pytest.raises(FrameError):
        decoder.take()
