"""Check the parts of an accelerator: that each has the right type and a possible size."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dlcompiler import dtypes
from dlcompiler.errors import TargetError
from dlcompiler.target.accelerators.instruction_checks import check_types, is_intrinsic
from dlcompiler.target.accelerators.parts import (
    MOST_CYCLES,
    Engine,
    Instruction,
    Memory,
    MemoryPort,
    is_whole,
)

_MOST_DIMENSIONS = 8
"""Dimensions of an element at most."""
_MOST_ENGINES = 100
"""Engines at most: a simulation keeps what each of them knows of each other one."""
_MOST_WORD_BITS = 4096
_DTYPES = tuple(name for name in dtypes.SCALARS if name != "index")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORDS = re.compile(r"[^\s#=]+( [^\s#=]+)*")
"""Names of instructions; listings have fields and comments behind them."""


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
    refuse.name("this", accelerator.name)
    for memory in accelerator.memories:
        refuse.name("a memory", memory.name)
        refuse.memory(memory)
    refuse.engines(accelerator.engines)
    for each in accelerator.instructions:
        if not isinstance(each.name, str) or not _WORDS.fullmatch(each.name):
            refuse("an instruction has no name", each.name, "words without '#' and '='")
        check_types(refuse.where, each)
    refuse.queues(accelerator.queues or ())
    if not isinstance(accelerator.port, MemoryPort):
        refuse("its port is no MemoryPort", accelerator.port, "MemoryPort(bytes_per_cycle, …)")
    port = accelerator.port
    if not is_whole(port.bytes_per_cycle) or not is_whole(port.latency, 0, MOST_CYCLES):
        refuse("its memory port has an impossible size", port,
               "whole numbers: bytes_per_cycle of at least 1, latency of at least 0")  # fmt: skip
    if type(accelerator.clock_hz) not in (int, float) or not 0 < accelerator.clock_hz < 1e15:
        refuse("its clock_hz is no frequency", accelerator.clock_hz, "a positive number [1/s]")
    if not is_whole(accelerator.word_bits, 8, _MOST_WORD_BITS) or accelerator.word_bits % 8:
        refuse("its words are no whole bytes", accelerator.word_bits,
               f"a multiple of 8, at most {_MOST_WORD_BITS}")  # fmt: skip


class _Refusal:
    """Raises the errors of one accelerator."""

    def __init__(self, accelerator: Any) -> None:
        self.where = f"describe the accelerator {accelerator.name!r}"

    def __call__(self, problem: str, got: object, expected: str) -> None:
        raise TargetError(self.where, problem, got=repr(got), expected=expected)

    def name(self, noun: str, name: object) -> None:
        """Refuse a name that scopes and listings could not contain."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            problem = "this is no name" if noun == "this" else f"{noun} has no name"
            self(problem, name, "letters, digits, '_', '-'")

    def memory(self, memory: Any) -> None:
        """Refuse a memory without elements, or of an unknown dtype."""
        shape = memory.shape
        is_shape = isinstance(shape, tuple) and 0 < len(shape) <= _MOST_DIMENSIONS
        if not is_shape or not all(map(is_whole, shape)):
            self(f"the shape of the memory {memory.name!r} is no shape of an element", shape,
                 "a tuple of whole numbers of at least 1, such as (16,)")  # fmt: skip
        if not is_whole(memory.depth):
            self(f"the memory {memory.name!r} has no elements", memory.depth,
                 "depth: a whole number of at least 1")  # fmt: skip
        for dtype in (memory.dtype, memory.in_dram or memory.dtype):
            if not isinstance(dtype, str) or dtype not in _DTYPES:
                self(f"the memory {memory.name!r} has no known dtype", dtype,
                     "a dtype, such as 'int8' or 'float32'")  # fmt: skip

    def engines(self, engines: Sequence[Any]) -> None:
        """Refuse engines without a name or a queue, and too many of them."""
        if len(engines) > _MOST_ENGINES:
            self("it has too many engines", len(engines), f"at most {_MOST_ENGINES}")
        for engine in engines:
            self.name("an engine", engine.name)
            if not is_whole(engine.queue):
                self(f"the queue of the engine {engine.name!r} has no place", engine.queue,
                     "a whole number of at least 1")  # fmt: skip

    def queues(self, queues: Sequence[Any]) -> None:
        """Refuse queues that lead nowhere, are there twice, or have no place."""
        names = [queue.name for queue in queues]
        fields = [(q.source, q.push_field) for q in queues]
        fields += [(q.sink, q.pop_field) for q in queues]
        for queue in queues:
            if queue.source == queue.sink:
                self(f"the queue {queue.name} leads from an engine to itself", queue.name,
                     "two engines: an engine runs its instructions in order")  # fmt: skip
            if names.count(queue.name) > 1:
                self("two queues lead from one engine to the same other", queue.name, "one")
            if not isinstance(queue.push_field, str) or not isinstance(queue.pop_field, str):
                self(f"the queue {queue.name} has no fields", queue, "push and pop: names")
            for engine, field in ((queue.source, queue.push_field), (queue.sink, queue.pop_field)):
                if fields.count((engine, field)) > 1:
                    self(f"two queues of the engine {engine!r} use one field", field,
                         "a field for each queue and direction")  # fmt: skip
            if not is_whole(queue.depth):
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
    if not is_intrinsic(intrinsic):
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
