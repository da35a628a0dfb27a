"""Accelerators as values, checked when they are made."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeVar

from dlcompiler.display import render
from dlcompiler.errors import TargetError
from dlcompiler.target.accelerators.checks import (
    KINDS,
    as_parts,
    checked_intrinsic,
    checked_parts,
)
from dlcompiler.target.accelerators.encodings import checked_fields, with_fields
from dlcompiler.target.accelerators.instruction_checks import check_codes, check_operands
from dlcompiler.target.accelerators.parts import (
    Engine,
    Instruction,
    Memory,
    MemoryPort,
    TokenQueue,
)
from dlcompiler.target.model import MemoryScope, Target

LOWERINGS = ("exact", "classic")
PROFILES = ("", "A", "B")
_Part = TypeVar("_Part", Memory, Engine, Instruction)


@dataclass(frozen=True)
class Accelerator:
    """A machine with memories of its own and engines that run at the same time.

    Parameters
    ----------
    name : str
        Its scopes are called ``"<name>.<memory>"``.
    memories, engines, instructions : sequences
        Its parts. Instructions without fields get an encoding in words of `word_bits`.
    queues : sequence of TokenQueue, optional
        Without it there is a queue in each direction between engines that access the same memory.
    port : MemoryPort
        The way to DRAM.
    clock_hz : float
        Clock [1/s].
    word_bits : int
        Size of an instruction [bit].

    Raises
    ------
    TargetError
        A name occurs twice or is unknown, a depth does not fit a field, a queue has no pop, or an
        operand of an intrinsic does not have the shape and dtype of its memory's elements.
    """

    name: str
    memories: Sequence[Memory]
    engines: Sequence[Engine]
    instructions: Sequence[Instruction]
    queues: Sequence[TokenQueue] | None = None
    port: MemoryPort = field(default_factory=MemoryPort)
    clock_hz: float = 100e6
    word_bits: int = 128
    profile: str = ""
    """Rules of the timed simulator, if they are not the general ones: ``"A"`` or ``"B"``."""
    lowering: str = "exact"
    """How programs are made. ``"exact"``: an instruction waits for those whose elements it needs,
    and equal lists of micro-ops are kept once. ``"classic"``, as TVM and the runtime of VTA do it:
    an instruction on another engine than the one before it waits for that one, and each statement
    has lists of micro-ops of its own."""

    _given: tuple[tuple[Instruction, ...], tuple[TokenQueue, ...] | None] = field(
        init=False, repr=False, compare=False
    )
    """Instructions and queues as they were described, before what follows from other parts."""

    def __post_init__(self) -> None:
        for noun, kind in KINDS.items():
            object.__setattr__(self, noun, as_parts(self.name, noun, getattr(self, noun), kind))
        if self.queues is not None:
            queues = as_parts(self.name, "queues", self.queues, TokenQueue)
            object.__setattr__(self, "queues", queues)
        object.__setattr__(self, "_given", (self.instructions, self.queues))
        checked_parts(self)
        operands = tuple(_with_operands(self, each) for each in self.instructions)
        object.__setattr__(self, "instructions", operands)
        self._check_names()
        if self.queues is None:
            object.__setattr__(self, "queues", _queues_between(self))
        for noun, known in (("lowering", LOWERINGS), ("profile", PROFILES)):
            if getattr(self, noun) not in known:
                raise TargetError(
                    f"describe the accelerator {self.name!r}", f"no such {noun}",
                    got=repr(getattr(self, noun)), expected=", ".join(map(repr, known)),
                )  # fmt: skip
        with_words = tuple(with_fields(self, each) for each in self.instructions)
        object.__setattr__(self, "instructions", with_words)
        for each in self.instructions:
            self._check_instruction(each)
        check_codes(self, f"describe the accelerator {self.name!r}")
        self._check_queues()
        _made[id(self)] = self

    def memory(self, name: str) -> Memory:
        """Return the memory of a name."""
        return _named(self, self.memories, name, "memory")

    def engine(self, name: str) -> Engine:
        """Return the engine of a name."""
        return _named(self, self.engines, name, "engine")

    def instruction(self, name: str) -> Instruction:
        """Return the instruction of a name."""
        return _named(self, self.instructions, name, "instruction")

    def scope_of(self, memory: str) -> str:
        """Return the name of a memory as a scope of buffers: ``"toy.tile"``."""
        return f"{self.name}.{memory}"

    def of(self, engine: str) -> tuple[Instruction, ...]:
        """Return the instructions of an engine."""
        return tuple(each for each in self.instructions if each.engine == engine)

    def accessors(self, memory: str) -> tuple[str, ...]:
        """Return the names of the engines that read or write a memory."""
        using = (i.engine for i in self.instructions if memory in (*i.reads, *i.writes))
        return tuple(dict.fromkeys(using))

    @property
    def target(self) -> Target:
        """The target of which this is the machine: ``dlc.build(…, target=accelerator)``."""
        scopes = [MemoryScope("global", 0, None, 64)]
        for memory in self.memories:
            scope = self.scope_of(memory.name)
            who = self.accessors(memory.name)
            size = memory.element_bytes
            scopes.append(MemoryScope(scope, 1, memory.bytes, size, size, who))
        intrinsics = frozenset(i.name for i in self.instructions if i.kind == "tensor")
        return Target(
            self.name, "accelerator", "instructions", "", "", (), "none", 8, 1, 1, (),
            tuple(scopes), ("vthread",), intrinsics, runs_on="accelerator", accelerator=self,
        )  # fmt: skip

    def with_(self, **changes: Any) -> Accelerator:
        """Return this accelerator with other parts; all checks are made again.

        Encodings and queues that were not described follow from the new parts.
        """
        given, queues = self._given
        changes = {"instructions": self.instructions, "queues": queues, **changes}
        if isinstance(changes["instructions"], Sequence):
            as_given = {id(mine): each for mine, each in zip(self.instructions, given, strict=True)}
            changes["instructions"] = [as_given.get(id(i), i) for i in changes["instructions"]]
        return replace(self, **changes)

    def _check_names(self) -> None:
        where = f"describe the accelerator {self.name!r}"
        for noun in ("memories", "engines", "instructions"):
            names = [each.name for each in getattr(self, noun)]
            if not names:
                raise TargetError(where, f"it has no {noun}")
            if twice := [name for name, count in _counts(names).items() if count > 1]:
                raise TargetError(where, f"two {noun} have the same name", got=twice[0])
        for each in self.instructions:
            self.engine(each.engine)
            for name in (*each.reads, *each.writes):
                self.memory(name)

    def _check_instruction(self, instruction: Instruction) -> None:
        where = f"describe the accelerator {self.name!r}"
        check_operands(self, instruction, where)
        checked_fields(self, instruction, where)
        operands = intrinsic_operands(instruction.intrinsic) if instruction.intrinsic else ()
        for (operand, memory_name), tensor in zip(
            instruction.operands.items(), operands, strict=False
        ):
            memory = self.memory(memory_name)
            if not _is_element(tensor, memory):
                raise TargetError(
                    where,
                    f"{operand} of {instruction.name} is no element of {memory_name}",
                    got=f"{tensor.dtype}{list(tensor.static_shape)}",
                    expected=f"{memory.dtype}{list(memory.shape)}",
                )

    def _check_queues(self) -> None:
        where = f"describe the accelerator {self.name!r}"
        assert self.queues is not None
        for queue in self.queues:
            for engine, name, verb in (
                (queue.source, queue.push_field, "pushes into"),
                (queue.sink, queue.pop_field, "pops"),
            ):
                self.engine(engine)
                lacking = [each.name for each in self.of(engine) if not each.field(name)]
                if lacking or not self.of(engine):
                    raise TargetError(
                        where, f"not each instruction of {engine} {verb} the queue {queue.name}"
                        if self.of(engine) else f"nobody {verb} the queue {queue.name}",
                        got=f"no field {name!r} of {', '.join(lacking) or engine}",
                        hint="an instruction of another accelerator keeps its fields: describe it"
                        " by copy(…) or tensor_op(…)" if self.of(engine)
                        else f"{engine} has no instructions",
                    )  # fmt: skip

    def __repr__(self) -> str:
        return (
            f"Accelerator({self.name!r}, memories: {', '.join(m.name for m in self.memories)};"
            f" engines: {', '.join(e.name for e in self.engines)})"
        )

    def _repr_html_(self) -> str:
        return render("accelerator", self)


def copy(
    engine: str,
    *,
    into: str = "",
    out_of: str = "",
    cycles: Callable[[int], int] | None = None,
    pads: bool = False,
    name: str = "",
) -> Instruction:
    """Return an instruction that copies a block of elements between DRAM and a memory.

    Parameters
    ----------
    engine : str
        The engine that runs it.
    into, out_of : str
        The memory that it loads into, or stores from: one of both.
    cycles : callable, optional
        ``f(n)``, the cycles for n elements; without it the memory port decides.
    pads : bool
        Whether it can write zeros around a block that it loads.
    name : str, optional
        Its name in listings.

    Examples
    --------
    >>> copy("load", into="tile", cycles=lambda n: 6 + n).name
    'load tile'
    """
    if bool(into) == bool(out_of):
        raise TargetError(
            f"describe a copy of the engine {engine}", "it needs one memory",
            got=f"into={into!r}, out_of={out_of!r}",
        )  # fmt: skip
    memory, kind = (into, "load") if into else (out_of, "store")
    return Instruction(
        name or f"{kind} {memory}",
        engine,
        "load" if into else "store",
        memory,
        cycles=cycles,
        pads=pads,
    )


def tensor_op(
    engine: str,
    intrinsic: Any,
    *,
    cycles: Callable[[int], int],
    memories: Sequence[str] = (),
    name: str = "",
) -> Instruction:
    """Return an instruction that computes a tensor intrinsic on elements of memories.

    Parameters
    ----------
    engine : str
        The engine that runs it.
    intrinsic : TensorIntrin
        What it computes.
    cycles : callable
        ``f(n)``, the cycles for n executions in one instruction.
    memories : sequence of str, optional
        The memory of the result, then those of the inputs. Without it, the one memory whose
        elements have the shape and dtype of the operand.
    name : str, optional
        Its name in listings; the intrinsic's without it.

    Examples
    --------
    >>> from dlcompiler import te
    >>> double = te.tensor_intrin("gemm_f32_6x16x64")
    >>> tensor_op("array", double, cycles=lambda n: n, memories=("c", "a", "b")).operands["dst"]
    'c'
    """
    checked_intrinsic(engine, intrinsic, memories)
    operands = dict(zip(_operand_names(intrinsic), memories, strict=False))
    return Instruction(
        name or intrinsic.name, engine, "tensor", operands=MappingProxyType(operands),
        intrinsic=intrinsic, cycles=cycles,
    )  # fmt: skip


def _operand_names(intrinsic: Any) -> tuple[str, ...]:
    """Return names for the operands of an intrinsic: ``dst``, ``src``, ``wgt``, ``src3``."""
    count = len(intrinsic_operands(intrinsic))
    return ("dst", "src", "wgt", *(f"src{n}" for n in range(3, count)))[:count]


def _with_operands(accelerator: Accelerator, instruction: Instruction) -> Instruction:
    """Return an instruction with a memory for each operand of its intrinsic.

    Raises
    ------
    TargetError
        No memory, or more than one, has elements of the shape and dtype of an operand.
    """
    if instruction.intrinsic is None or instruction.operands:
        return instruction
    found = {}
    intrinsic = instruction.intrinsic
    for name, tensor in zip(_operand_names(intrinsic), intrinsic_operands(intrinsic), strict=True):
        fitting = [m.name for m in accelerator.memories if _is_element(tensor, m)]
        if len(fitting) != 1:
            what = f"{name} of {instruction.name}, {tensor.op.name},"
            has = (f"{m.name}: {m.dtype}{list(m.shape)}" for m in accelerator.memories)
            raise TargetError(
                f"describe the accelerator {accelerator.name!r}",
                f"{what} can be in {len(fitting)} memories" if fitting
                else f"{what} is an element of no memory",
                got=", ".join(fitting or has),
                expected=f"one memory with elements of {tensor.dtype}{list(tensor.static_shape)}",
                hint="tensor_op(…, memories=(…)) names them" if fitting else None,
            )  # fmt: skip
        found[name] = fitting[0]
    return replace(instruction, operands=MappingProxyType(found))


def _is_element(tensor: Any, memory: Memory) -> bool:
    """Tell whether a tensor has the shape of an element, but for dimensions of extent 1."""
    shape = [n for n in memory.shape if n != 1]
    return (memory.dtype, shape) == (tensor.dtype, [n for n in tensor.static_shape if n != 1])


def intrinsic_operands(intrinsic: Any) -> tuple[Any, ...]:
    """Return the tensors of an intrinsic: its result, then its inputs."""
    return (intrinsic.output, *intrinsic.inputs)


# Accelerators that are in use, by identity, since several can have one name. A schedule puts
# buffers into their memories by name.
_made: weakref.WeakValueDictionary[int, Accelerator] = weakref.WeakValueDictionary()


def in_use() -> list[Accelerator]:
    """Return all accelerators that are in use."""
    return list(_made.values())


def scopes() -> frozenset[str]:
    """Return the memories of all accelerators that are in use, as scopes."""
    return frozenset(a.scope_of(m.name) for a in in_use() for m in a.memories)


def _queues_between(accelerator: Accelerator) -> tuple[TokenQueue, ...]:
    """Return a queue in each direction between engines that access the same memory."""
    pairs: dict[tuple[str, str], None] = {}
    for memory in accelerator.memories:
        pairs |= dict.fromkeys(itertools.permutations(accelerator.accessors(memory.name), 2))
    return tuple(TokenQueue(source, sink) for source, sink in sorted(pairs))


def _named(accelerator: Accelerator, items: Iterable[_Part], name: str, noun: str) -> _Part:
    known = {each.name: each for each in items}
    if name not in known:
        raise TargetError(
            f"describe the accelerator {accelerator.name!r}", f"it has no such {noun}",
            got=repr(name), expected=", ".join(known),
        )  # fmt: skip
    return known[name]


def _counts(names: Iterable[str]) -> dict[str, int]:
    listed = list(names)
    return {name: listed.count(name) for name in listed}
