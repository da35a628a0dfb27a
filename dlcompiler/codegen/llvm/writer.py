"""Collect the text of LLVM functions and modules, instruction by instruction.

A `Function` numbers values, names loop variables, buffers and blocks, and gives every instruction
the debug location of the current statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dlcompiler.codegen.llvm.debug import DebugInfo
from dlcompiler.codegen.llvm.types import identifier


class Function:
    """Collects the lines of one function, in the order of the text.

    Attributes
    ----------
    symbol : str
        Name of the function, without ``@``.
    line : int or None
        The loop-IR line where it begins; None: it has no line of its own, and where LLVM inlines
        it, its instructions get the line of the call.
    lines : list of tuple of str and int
        Each line of the body with the loop-IR line it carries out.
    block : str
        Label of the block that instructions are appended to.
    """

    def __init__(self, module: Module, symbol: str, line: int | None) -> None:
        self.module = module
        self.symbol = symbol
        self.lines: list[tuple[str, int]] = []
        self.block = "entry"
        self._first_line = line or 0
        self._scope = None if line is None else module.debug.subprogram(symbol, line)
        self._parameters: list[str] = []
        self._prologue: list[tuple[str, int]] = []
        self._epilogue: list[tuple[str, int]] = []
        self._wanted: list[str] = []
        self._refusal = ""
        self._names: dict[str, int] = {"entry": 1}
        self._count = 0
        self._leave = ""
        self._known: dict[str, str] = {}
        self._zero: str | None = None
        self._waste: str | None = None
        self.at(self._first_line)

    # -- names and places ---------------------------------------------------------------------

    def name(self, wanted: str) -> str:
        """Return an unused name of a value or a block, quoted where needed, without ``%``."""
        used = self._names.get(wanted, 0)
        self._names[wanted] = used + 1
        return identifier(wanted) if used == 0 else self.name(f"{wanted}.{used}")

    def parameter(self, wanted: str, type_and_attributes: str) -> str:
        """Add a parameter and return it as an operand."""
        operand = f"%{self.name(wanted)}"
        self._parameters.append(f"{type_and_attributes} {operand}")
        return operand

    def at(self, line: int) -> None:
        """Set the line of the printed loop IR that the next instructions belong to."""
        self._line = line
        self._suffix = self._location(line)

    def _location(self, line: int) -> str:
        if self._scope is None:
            return ""
        return f", !dbg !{self.module.debug.location(self._scope, line)}"

    # -- instructions -------------------------------------------------------------------------

    def pure(self, operation: str) -> str:
        """Append an instruction without effects and return its value.

        If this block already contains the same instruction, return the value of that one.
        """
        value = self._known.get(operation)
        if value is None:
            value = self._known[operation] = self.value(operation)
        return value

    def value(self, operation: str) -> str:
        """Append an instruction and return its value."""
        value = f"%{self._count}"
        self._count += 1
        self.lines.append((f"  {value} = {operation}{self._suffix}", self._line))
        return value

    def effect(self, instruction: str) -> None:
        """Append an instruction that has no value."""
        self.lines.append((f"  {instruction}{self._suffix}", self._line))

    def named(self, value: str, operation: str) -> None:
        """Append an instruction whose result gets the name `value`."""
        self.effect(f"{value} = {operation}")

    def prologue(self, instruction: str) -> None:
        """Add an instruction to the start of the function: it runs once per call."""
        self._prologue.append((f"  {instruction}{self._suffix}", self._line))

    def prologue_check(self, pointer: str, status: str, number: int) -> None:
        """Make the function fail before its body if a pointer of the prologue is null."""
        self._wanted.append(pointer)
        self._refusal = f"cmpxchg ptr {status}, i64 0, i64 {number} monotonic monotonic"

    def stack(self, wanted: str, type_: str, alignment: int) -> str:
        """Allocate memory in the prologue, once for all iterations, and return its address."""
        address, space = f"%{self.name(wanted)}", self.module.stack_space
        allocated = f"alloca {type_}, align {alignment}"
        if not space:
            self.prologue(f"{address} = {allocated}")
            return address
        own = f"%{self.name(f'{wanted}.stack')}"
        self.prologue(f"{own} = {allocated}, addrspace({space})")
        self.prologue(f"{address} = addrspacecast ptr addrspace({space}) {own} to ptr")
        return address

    def zero(self) -> str:
        """Return the address of a 0, valid for any type: an inactive load reads it."""
        if self._zero is None:
            self._zero = self.stack("zero", "i64", 8)
            self.prologue(f"store i64 0, ptr {self._zero}, align 8")
        return self._zero

    def waste(self) -> str:
        """Return an address that is never read: an inactive store writes to it."""
        if self._waste is None:
            self._waste = self.stack("waste", "i64", 8)
        return self._waste

    def epilogue(self, instruction: str) -> None:
        """Add an instruction to the end of the function."""
        self._epilogue.append((f"  {instruction}{self._suffix}", self._line))

    # -- blocks -------------------------------------------------------------------------------

    def open(self, label: str) -> None:
        """Begin the block `label`."""
        self.lines.append((f"{label}:", self._line))
        self.block = label
        self._known.clear()

    def jump(self, label: str) -> None:
        """End the block with a jump."""
        self.effect(f"br label %{label}")

    def branch(self, condition: str, then: str, otherwise: str, hint: str = "") -> None:
        """End the block with a conditional jump; `hint` is metadata, with a comma before it."""
        self.effect(f"br i1 {condition}, label %{then}, label %{otherwise}{hint}")

    def leave(self) -> None:
        """End the block with a jump to the end of the function."""
        if not self._leave:
            self._leave = self.name("leave")
        self.jump(self._leave)

    def join(self, label: str, type_: str, incoming: Sequence[tuple[str, str]]) -> str:
        """Begin the block `label` with a phi of `incoming`, pairs of a value and its block."""
        self.open(label)
        pairs = ", ".join(f"[ {value}, %{block} ]" for value, block in incoming)
        return self.value(f"phi {type_} {pairs}")

    def reserve(self) -> int:
        """Append an empty line, which `fill` replaces when its text is known."""
        self.lines.append(("", self._line))
        return len(self.lines) - 1

    def fill(self, position: int, instruction: str) -> None:
        """Replace the empty line that `reserve` appended."""
        self.lines[position] = (f"  {instruction}{self._suffix}", self._line)

    # -- text ---------------------------------------------------------------------------------

    def finished(
        self,
        linkage: str = "",
        attributes: str = "nounwind",
        result: tuple[str, str] = ("void", ""),
    ) -> list[tuple[str, int]]:
        """Return all lines of the function's text with the loop-IR line of each.

        `result` is the type and the operand of what it returns.
        """
        opening = self._opening()
        if self._leave:
            self.jump(self._leave)
            self.open(self._leave)
        keyword = " ".join(word for word in ("define", linkage, result[0]) if word)
        head = f"{keyword} @{identifier(self.symbol)}({', '.join(self._parameters)}) {attributes}"
        if self._scope is not None:
            head += f" !dbg !{self._scope}"
        return [
            (f"{head} {{", self._first_line),
            *opening,
            *self.lines,
            *self._epilogue,
            (f"  ret {' '.join(result).rstrip()}{self._location(0)}", 0),
            ("}", 0),
            ("", 0),
        ]

    def _opening(self) -> list[tuple[str, int]]:
        """Return the lines before the body."""
        if not self._wanted:
            return [("entry:", self._first_line), *self._prologue]
        line = self._line
        self.at(self._first_line)
        self._leave = self._leave or self.name("leave")
        failed, known = self.name("no_memory"), "false"
        for pointer in self._wanted:
            missing, either = self.name("missing"), self.name("missing")
            self.prologue(f"%{missing} = icmp eq ptr {pointer}, null")
            self.prologue(f"%{either} = or i1 {known}, %{missing}")
            known = f"%{either}"
        self.prologue(f"br i1 {known}, label %{failed}, label %entry")
        lines = [(f"{self.name('prologue')}:", self._first_line), *self._prologue]
        self._prologue = []
        self.prologue(f"%{self.name('status')} = {self._refusal}")
        self.prologue(f"br label %{self._leave}")
        self.at(line)
        return [*lines, (f"{failed}:", self._first_line), *self._prologue, ("entry:", 0)]


@dataclass
class Defined:
    """A helper function that the module defines and calls."""

    lines: list[tuple[str, int]]
    calls: int = 0
    """Number of calls written so far."""


@dataclass
class Module:
    """The functions of one LLVM module, its declarations and its debug information."""

    debug: DebugInfo
    triple: str
    has_fma: bool = True
    """Whether the machine rounds ``a*b + c`` once in one instruction."""
    has_library: bool = True
    """Whether the code can call functions of the C library."""
    features: frozenset[str] = frozenset()
    """The features of the machine, by LLVM's names."""
    vector_bits: int = 128
    """Width of its vectors [bit]."""
    is_in_place: bool = False
    """Whether an array may be that of another parameter: see `PrimFunc.is_in_place`."""
    stack_space: int = 0
    """Address space of the memory of a thread."""
    declarations: dict[str, str] = field(default_factory=dict)
    functions: list[list[tuple[str, int]]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    """Messages of the checks, in the order of their numbers from 1."""
    constants: dict[str, str] = field(default_factory=dict)
    defined: dict[str, Defined] = field(default_factory=dict)

    def declare(self, symbol: str, result: str, arguments: str, attributes: str = "") -> str:
        """Declare a function, once, and return it as an operand."""
        if symbol not in self.declarations:
            text = f"declare {result} @{symbol}({arguments}) {attributes}"
            self.declarations[symbol] = text.rstrip()
        return f"@{symbol}"

    def define(self, symbol: str, lines: list[tuple[str, int]]) -> None:
        """Define a function that the code calls."""
        self.functions.append(lines)
        self.defined[symbol] = Defined(lines)

    def constant(self, symbol: str, type_: str, value: str) -> str:
        """Define constant data, once, and return its address."""
        self.constants[symbol] = f"@{symbol} = private unnamed_addr constant {type_} {value}"
        return f"@{symbol}"

    def finished(self) -> tuple[str, tuple[int, ...]]:
        """Return the module's text, and the loop-IR line of each of its lines."""
        lines = [
            (f'source_filename = "{self.debug.file_name}"', 0),
            (f'target triple = "{self.triple}"', 0),
            ("", 0),
        ]
        lines += [(text, 0) for text in self.constants.values()]
        for function in self.functions:
            lines += function
        lines += [(text, 0) for text in sorted(self.declarations.values())]
        lines += [("", 0), *((text, 0) for text in self.debug.finished())]
        return "\n".join(text for text, _ in lines) + "\n", tuple(line for _, line in lines)
