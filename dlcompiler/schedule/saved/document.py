"""Save schedules as JSON or as links: expression (in notation), states and cursor.

The text is parsed and checked, never evaluated, so texts from unknown sources are safe to read.
They can only name primitives, whose steps get the same checks as a user's calls.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from dlcompiler import te
from dlcompiler.errors import ScheduleError
from dlcompiler.json_text import JsonError, parse
from dlcompiler.schedule.history import Node
from dlcompiler.schedule.saved.renamed import renamed, tensors_by_name
from dlcompiler.schedule.schedule import Schedule, create_schedule
from dlcompiler.schedule.state import Step
from dlcompiler.schedule.trace import decode
from dlcompiler.te import Tensor

FORMAT = "dlcompiler schedule"
VERSION = 1
FRAGMENT = "#s="
"""Prefix of the fragment of a link that holds a schedule."""
MAX_BYTES = 1_000_000
"""Longest text that is read, also after decompression [bytes]."""
MAX_STATES = 2_000
MAX_DEPTH = 6
"""Levels of lists and objects in the data of this version: that of a list of axes."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Saved:
    """A schedule with its function's parameters, name and target, as a document stores them."""

    schedule: Schedule
    args: tuple[Tensor, ...]
    """Parameters of the function: inputs first, outputs last."""
    target: str = "cpu"
    """Name of a target."""
    name: str = "main"
    """Name of the function."""


# -- writing --------------------------------------------------------------------------------------


def to_data(saved: Saved, *, is_whole: bool = True) -> Json:
    """Return a schedule as JSON-able data.

    Parameters
    ----------
    saved
        The schedule, at its state.
    is_whole
        Whether to include all states of the history with their notes and results (times,
        verifications); otherwise only the states from the start to the current one, with names.

    Returns
    -------
    dict
        ``format``, ``version``, ``name``, ``target``, ``program`` (notation, its declarations, the
        names of its outputs and parameters), ``states`` (parents first) and ``here``, a place in
        that list.

    Raises
    ------
    DLCompilerError
        If the expression has no text: it has a reduction of the user's own.
    """
    twin, args = renamed(saved.schedule, saved.args, is_whole=is_whole)
    nodes = sorted(twin.history.history.nodes.values(), key=lambda node: node.number)
    places = {node.id: n for n, node in enumerate(nodes)}
    outputs = twin.outputs
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": saved.name,
        "target": saved.target,
        "program": {
            "text": te.notation_text(*outputs),
            "declarations": te.notation_arguments(*outputs),
            "outputs": [tensor.name for tensor in outputs],
            "args": [tensor.name for tensor in args],
        },
        "states": [_state(node, places, is_whole) for node in nodes],
        "here": places[twin.node.id],
    }


def _state(node: Node, places: dict[str, int], is_whole: bool) -> Json:
    state: Json = {}
    if node.step is not None and node.parent is not None:
        state = {"parent": places[node.parent.id], "step": node.step.to_json()}
    if node.name:
        state["name"] = node.name
    if is_whole and node.note:
        state["note"] = node.note
    if is_whole and node.notes:
        state["known"] = {kind: str(value) for kind, value in node.notes.items()}
    return state


def to_json(saved: Saved) -> str:
    """Return a schedule with its whole history as JSON; see `to_data`."""
    return json.dumps(to_data(saved), indent=1, ensure_ascii=False)


def to_link(saved: Saved) -> str:
    """Return the current state of a schedule as the fragment of a link: ``#s=…``.

    The fragment is base64url without padding. It contains the JSON of `to_data`, deflated
    (RFC 1951), and then the CRC-32 of the JSON in four bytes, the most significant first.
    """
    text = json.dumps(to_data(saved, is_whole=False), separators=(",", ":")).encode()
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    packed = packer.compress(text) + packer.flush() + zlib.crc32(text).to_bytes(4, "big")
    return FRAGMENT + base64.urlsafe_b64encode(packed).decode().rstrip("=")


# -- reading --------------------------------------------------------------------------------------


def from_link(text: object) -> Saved:
    """Read a schedule from a link that `to_link` made, or from its fragment.

    Raises
    ------
    DLCompilerError
        If the link contains no schedule, or a step cannot be repeated.
    """
    if not isinstance(text, str) or FRAGMENT not in text:
        _refuse("read a link", "it holds no schedule", expected=f"…{FRAGMENT}…")
    code = text.partition(FRAGMENT)[2].strip().rstrip("=")
    if len(code) > MAX_BYTES or not re.fullmatch(r"[\w-]+", code, re.ASCII):
        _refuse("read a link", "its schedule is damaged", expected="base64url")
    try:
        packed = base64.urlsafe_b64decode(code + "=" * (-len(code) % 4))
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
        # A few bytes can stand for gigabytes: never more than the limit is unpacked.
        data = unpacker.decompress(packed, MAX_BYTES)
    except (binascii.Error, zlib.error):
        _refuse("read a link", "its schedule is damaged", hint="the link may have been cut")
    if unpacker.unconsumed_tail:
        _refuse("read a link", "it is too long", expected=f"at most {MAX_BYTES} bytes of JSON")
    # Links of earlier versions end without a checksum.
    is_whole = unpacker.unused_data in (b"", zlib.crc32(data).to_bytes(4, "big"))
    if not unpacker.eof or not is_whole:
        _refuse("read a link", "its schedule is damaged", hint="the link may have been cut")
    try:
        return from_json(data.decode("utf-8"))
    except UnicodeDecodeError:
        _refuse("read a link", "its schedule is damaged", hint="the link may have been cut")


def from_json(text: object) -> Saved:
    """Read a schedule that `to_json` wrote.

    Times and verifications of its states are not read, because they may be of another machine.

    Raises
    ------
    DLCompilerError
        If the text is not valid or of another version, or if a step is illegal.
    """
    if not isinstance(text, str) or len(text) > MAX_BYTES:
        _refuse("read a schedule", "not a text of at most 1 MB", got=type(text).__name__)
    try:
        data = parse(text)
    except JsonError as error:
        _refuse("read a schedule", "not JSON", got=str(error)[:200])
    return from_data(data)


def from_data(data: Any) -> Saved:
    """Read a schedule from the data of `to_data`; raise a DLCompilerError for other data."""
    match data:
        case {
            "format": str(FORMAT_), "version": int(version), "name": str(name),
            "target": str(target), "program": dict(program), "states": [_, *_] as states,
            "here": int(here),
        } if FORMAT_ == FORMAT:  # fmt: skip
            pass
        case _:
            _refuse("read a schedule", "not a schedule of dlcompiler", got=type(data).__name__)
    if version != VERSION:
        _refuse(
            "read a schedule", "it is of another version", got=str(version), expected=str(VERSION)
        )
    if len(states) > MAX_STATES or not 0 <= here < len(states) or len(name) > MAX_STATES:
        _refuse("read a schedule", "its states are malformed", expected=f"at most {MAX_STATES}")
    schedule, tensors = _program(program)
    ids = _states(schedule, states)
    schedule.jump(ids[here])
    return Saved(schedule, tensors, target, name)


def _program(data: Json) -> tuple[Schedule, tuple[Tensor, ...]]:
    match data:
        case {"text": str(text), "declarations": dict(given), "outputs": list(outputs),
              "args": list(args)}:  # fmt: skip
            read = te.notation(text, **{name: _declared(value) for name, value in given.items()})
        case _:
            _refuse("read a schedule", "its program is malformed", expected="text, declarations")
    known = tensors_by_name(read if isinstance(read, tuple) else (read,))
    for name in (*outputs, *args):
        if not isinstance(name, str) or name not in known:
            _refuse("read a schedule", "its program has no such tensor", got=repr(name)[:80])
    return create_schedule([known[name] for name in outputs]), tuple(known[name] for name in args)


def _declared(value: Any, depth: int = 0) -> Any:
    """Convert the lists in a declaration to tuples; refuse items that are not integers or texts."""
    if isinstance(value, list) and depth < MAX_DEPTH:
        return tuple(_declared(item, depth + 1) for item in value)
    if not isinstance(value, int | str) or isinstance(value, bool):
        _refuse("read a schedule", "a declaration is malformed", got=repr(value)[:80])
    return value


def _states(schedule: Schedule, states: Sequence[Any]) -> list[str]:
    """Replay the steps; return the id of each state."""
    ids: list[str] = []
    for number, state in enumerate(states):
        match state:
            case {"parent": int(parent), "step": dict(step)} if 0 <= parent < number:
                schedule.jump(ids[parent])
                _apply(schedule, step)
            case dict() if number == 0 and "step" not in state:
                pass
            case _:
                _refuse("read a schedule", f"state {number} is malformed", got=repr(state)[:80])
        ids.append(schedule.node.id)
        _describe(schedule, state)
    return ids


def _apply(schedule: Schedule, data: Json) -> None:
    match data:
        case {"primitive": str(name), "stage": str(stage), "args": dict(args)}:
            step = Step(name, stage, args)
        case _:
            _refuse("read a schedule", "a step is malformed", got=repr(data)[:80])
    schedule.apply(step.primitive, step.stage, decode(schedule.state, step))


def _describe(schedule: Schedule, state: Json) -> None:
    texts = state.get("name", ""), state.get("note", "")
    if not all(isinstance(text, str) for text in texts):
        _refuse("read a schedule", "a name or a note is no text", got=repr(texts)[:80])
    schedule.describe(*texts)


def _refuse(
    operation: str,
    problem: str,
    *,
    got: str | None = None,
    expected: str | None = None,
    hint: str | None = None,
) -> NoReturn:
    raise ScheduleError(operation, problem, got=got, expected=expected, hint=hint)
