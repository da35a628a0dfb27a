"""Check the parts of an accelerator: that each has the right type and a possible size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler import dtypes
from dlcompiler.errors import TargetError
from dlcompiler.target.accelerators.parts import (
    Engine,
    Instruction,
    Memory,
    MemoryPort,
    TokenQueue,
)

_MOST_DIMENSIONS = 8
"""Dimensions of an element at most."""


def as_parts(name: object, noun: str, given: Any, kind: type) -> tuple[Any, ...]:
    """Return a sequence of parts as a tuple.

    Raises
    ------
    TargetError
        It is no sequence, or something in it is no such part.
    """
    parts = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else ()
    wrong = next((each for each in parts if not isinstance(each, kind)), None)
    if wrong is not None or not isinstance(given, Sequence) or isinstance(given, str):
        raise TargetError(
            f"describe the accelerator {name!r}", f"its {noun} are no sequence of {kind.__name__}",
            got=repr(given if wrong is None else wrong), expected=f"[{kind.__name__}(…), …]",
        )  # fmt: skip
    return parts


def checked_parts(accelerator: Any) -> None:
    """Refuse sizes, dtypes and functions that no part can have.

    Parameters
    ----------
    accelerator
        An `Accelerator`, each part of which can be anything but its sequences.

    Raises
    ------
    TargetError
        The message names the part.
    """
    refuse = _Refusal(accelerator)
    for memory in accelerator.memories:
        refuse.memory(memory)
    for engine in accelerator.engines:
        if not _is_whole(engine.queue):
            refuse(f"the queue of the engine {engine.name!r} has no place", engine.queue,
                   "a whole number of at least 1")  # fmt: skip
    for each in accelerator.instructions:
        if each.cycles is not None and not callable(each.cycles):
            refuse(f"cycles of {each.name!r} is no function", each.cycles,
                   "lambda n: …, of the number of elements moved or of micro-ops")  # fmt: skip
    refuse.queues(accelerator.queues or ())
    if not isinstance(accelerator.port, MemoryPort):
        refuse("its port is no MemoryPort", accelerator.port, "MemoryPort(bytes_per_cycle, …)")
    port = accelerator.port
    if not _is_whole(port.bytes_per_cycle) or not _is_whole(port.latency, 0):
        refuse("its memory port has an impossible size", port,
               "whole numbers: bytes_per_cycle of at least 1, latency of at least 0")  # fmt: skip
    if not isinstance(accelerator.clock_hz, int | float) or not 0 < accelerator.clock_hz < 1e15:
        refuse("its clock_hz is no frequency", accelerator.clock_hz, "a positive number [1/s]")
    if not _is_whole(accelerator.word_bits) or accelerator.word_bits % 8:
        refuse("its words are no whole bytes", accelerator.word_bits, "a multiple of 8")


def _is_whole(value: object, least: int = 1) -> bool:
    return type(value) is int and value >= least


class _Refusal:
    """Raises the errors of one accelerator."""

    def __init__(self, accelerator: Any) -> None:
        self._where = f"describe the accelerator {accelerator.name!r}"

    def __call__(self, problem: str, got: object, expected: str) -> None:
        raise TargetError(self._where, problem, got=repr(got), expected=expected)

    def memory(self, memory: Any) -> None:
        """Refuse a memory without elements, or of an unknown dtype."""
        shape = memory.shape
        is_shape = isinstance(shape, tuple) and 0 < len(shape) <= _MOST_DIMENSIONS
        if not is_shape or not all(map(_is_whole, shape)):
            self(f"the shape of the memory {memory.name!r} is no shape of an element", shape,
                 "a tuple of whole numbers of at least 1, such as (16,)")  # fmt: skip
        if not _is_whole(memory.depth):
            self(f"the memory {memory.name!r} has no elements", memory.depth,
                 "depth: a whole number of at least 1")  # fmt: skip
        for dtype in filter(None, (memory.dtype, memory.in_dram)):
            try:
                dtypes.bytes_of(dtype)
            except Exception:  # a dtype can be anything here
                self(f"the memory {memory.name!r} has no known dtype", dtype,
                     "a dtype, such as 'int8' or 'float32'")  # fmt: skip

    def queues(self, queues: Sequence[TokenQueue]) -> None:
        """Refuse queues that lead nowhere, are there twice, or have no place."""
        names = [queue.name for queue in queues]
        for queue in queues:
            if queue.source == queue.sink:
                self(f"the queue {queue.name} leads from an engine to itself", queue.name,
                     "two engines: an engine runs its instructions in order")  # fmt: skip
            if names.count(queue.name) > 1:
                self("two queues lead from one engine to the same other", queue.name, "one")
            if not _is_whole(queue.depth):
                self(f"the queue {queue.name} has no place for a token", queue.depth,
                     "depth: a whole number of at least 1")  # fmt: skip


def checked_intrinsic(engine: str, intrinsic: Any, memories: Sequence[str]) -> None:
    """Refuse what is no tensor intrinsic, or the wrong number of memories for its operands.

    Raises
    ------
    TargetError
        The message says what is wrong.
    """
    where = f"describe a tensor instruction of the engine {engine}"
    if not all(hasattr(intrinsic, name) for name in ("output", "inputs", "id")):
        raise TargetError(
            where, "this is no tensor intrinsic", got=repr(intrinsic),
            expected="te.decl_tensor_intrin(…), or te.tensor_intrin(name)",
        )  # fmt: skip
    operands = [intrinsic.output, *intrinsic.inputs]
    if memories and len(memories) != len(operands):
        raise TargetError(
            where, f"{intrinsic.name} has {len(operands)} operands", got=repr(tuple(memories)),
            expected="a memory for " + ", ".join(str(tensor.op.name) for tensor in operands),
        )  # fmt: skip


KINDS = {"memories": Memory, "engines": Engine, "instructions": Instruction}
"""Parameter of an accelerator -> the type of its parts."""
