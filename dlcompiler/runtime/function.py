"""Call a built kernel on NumPy arrays, after checking them."""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from dlcompiler.display import render
from dlcompiler.errors import MAX_VALUES, OutOfMemory, ProgramError, filled
from dlcompiler.runtime import native, threads
from dlcompiler.runtime.arguments import (
    Array,
    Param,
    as_checked_array,
    check_count,
    refuse_overlap,
)
from dlcompiler.runtime.callbacks import take_raised
from dlcompiler.runtime.entry import Entry, Pair, Status, declining, entry_of
from dlcompiler.runtime.llvm import Options
from dlcompiler.runtime.native import PARALLEL_FOR
from dlcompiler.runtime.source import Interface
from dlcompiler.runtime.symbols import Check, Symbols, Variable

# The fastest reliable way to read an array's data pointer. NumPy's C API documents the struct
# PyArrayObject_fields, whose first field after the object's header is this pointer. Measured per
# array: this way 0.15 µs, a buffer of ctypes 0.3 (writable arrays only), the capsule of
# __array_struct__ 0.5 and its fields on top, array.ctypes.data 1.3, __array_interface__ 1.5.
# `_reads_data_pointer` tries this at import.
_DATA_OFFSET = object.__basicsize__
_read_pointer = ctypes.c_ssize_t.from_address
_Status = ctypes.c_int64 * (1 + MAX_VALUES)
"""The number of the message, 0 for none, and the values that are reported with it."""


_C_TYPES: dict[str, Any] = {
    "index": ctypes.c_int64,
    "bool": ctypes.c_bool,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "int8": ctypes.c_int8,
    "int16": ctypes.c_int16,
    "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
}


def _reads_data_pointer() -> bool:
    whole = np.arange(12, dtype=np.int16).reshape(3, 4)
    samples: tuple[Array, ...] = (whole, whole[1:, 2:], whole[::-1], np.empty(()), np.empty((0, 4)))
    if np.ndarray.__basicsize__ < _DATA_OFFSET + ctypes.sizeof(ctypes.c_ssize_t):
        return False
    return all(_read_pointer(id(a) + _DATA_OFFSET).value == a.ctypes.data for a in samples)


_READS_DATA_POINTER = _reads_data_pointer()


def _pairs_to_keep_apart(params: Sequence[Param]) -> Iterator[Pair]:
    """Yield the pairs of arrays that must not overlap."""
    for output, written in enumerate(params):
        for other, param in enumerate(params):
            is_new = other < output or not param.is_output
            if not (written.is_static and param.is_static):
                continue
            if written.is_output and other != output and is_new and written.nbytes and param.nbytes:
                yield output, other, written.nbytes, param.nbytes


class Code(Protocol):
    """The protocol of loaded code, from LLVM, a library or C."""

    @property
    def text(self) -> str:
        """LLVM IR before LLVM's passes, or C."""

    @property
    def options(self) -> Options:
        """Options that the code was compiled with."""

    @property
    def imports(self) -> frozenset[str]:
        """External functions that it calls."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the texts that `source` returns, the generated one first."""

    def source(self, name: str | None = None) -> str:
        """Return one of its texts; without a name, the generated one."""

    @property
    def optimized_ir(self) -> str:
        """LLVM IR after LLVM's passes."""

    @property
    def assembly(self) -> str:
        """Assembly text."""

    def address(self, symbol: str) -> int:
        """Return the address of a function."""

    @property
    def is_machine_code(self) -> bool:
        """Whether its functions run here, called by their addresses."""

    def entry(self, symbol: str, types: Sequence[Any]) -> Callable[..., object]:
        """Return a callable for operands of these types."""


def described_by(called: Interface) -> dict[str, Any]:
    """Return the arguments of `Function`, except the code, from an interface."""
    return {
        "symbol": called.symbol,
        "params": called.params,
        "variables": called.variables,
        "checks": called.checks,
        "messages": called.messages,
    }


class Function:
    """A kernel that takes NumPy arrays, outputs last.

    Parameters
    ----------
    module : Code
        Where the code is; it stays loaded as long as this object or a call of it lives.
    symbol : str
        Name of the code: ``void symbol(ptr, …, i64, …)``: one pointer for each array of
        ``params``, then the variables.
    params : sequence of Param
        The arrays and numbers, inputs before outputs.
    name : str, optional
        Name to show; the symbol by default.
    variables : sequence of Variable
        The numbers that the code takes: those of ``params``, and symbols inferred from shapes.
    checks : sequence of Check
        What must hold of them.
    messages : sequence of str
        Texts of the errors of the code, by their number from 1: templates for `errors.filled`.
        If there are any, the code takes one more operand after all others: the address of the
        number, followed by up to `MAX_VALUES` values for the message.
    holds : object
        What the code refers to by address: it lives as long as this object.

    Notes
    -----
    A call checks number, type, dtype, byte order, shape, contiguity, alignment and writability of
    the arrays, and that no output overlaps another argument, before any machine code runs. Objects
    with ``__dlpack__`` in CPU memory are accepted without a copy.
    """

    def __init__(
        self,
        module: Code,
        symbol: str,
        params: Sequence[Param],
        name: str | None = None,
        *,
        variables: Sequence[Variable] = (),
        checks: Sequence[Check] = (),
        messages: Sequence[str] = (),
        holds: object = None,
    ) -> None:
        self.holds = holds
        """What the code refers to by address."""
        self.module = module
        """The loaded code."""
        self.symbol = symbol
        """Name of the code in the module."""
        self.params = tuple(params)
        """The arrays that a call takes."""
        self.name = name or symbol
        """Name in messages."""
        self.variables = tuple(variables)
        """The numbers that its code takes after the arrays."""
        self.checks = tuple(checks)
        """What must hold of them."""
        arrays = [param for param in self.params if not param.is_number]
        types = [ctypes.c_void_p] * len(arrays) + [_C_TYPES[v.dtype] for v in self.variables]
        self.messages = tuple(messages)
        """Texts of the errors of the code."""
        types += [ctypes.c_void_p] if self.messages else []
        self._kernel = module.entry(symbol, types)
        self._uses_threads = PARALLEL_FOR in module.imports
        self._apart = list(_pairs_to_keep_apart(self.params))
        has_symbols = bool(self.variables) or not all(param.is_static for param in self.params)
        self._symbols = Symbols(self.params, variables, checks) if has_symbols else None
        self._written = [n for n, param in enumerate(arrays) if param.is_output]
        # Not by the first call: the code of entries may be compiled for it, and a process that
        # forks while another thread compiles has a child in which LLVM never answers.
        self._entry = self._new_entry()

    @classmethod
    def of(cls, module: Code, called: Interface) -> Function:
        """Return the function that an interface describes.

        Parameters
        ----------
        module : Code
            Where the code is.
        called : Interface
            The interface of the function.
        """
        return Function(module, **described_by(called))

    @property
    def uses_threads(self) -> bool:
        """Whether it has parallel loops."""
        return self._uses_threads

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the texts that `source` returns."""
        return self.module.texts

    def source(self, name: str | None = None) -> str:
        """Return a text of the kernel.

        Parameters
        ----------
        name : str, optional
            ``"llvm"``, ``"optimized llvm"`` or ``"assembly"``; ``"c"`` or ``"header"`` of a kernel
            in C. By default, LLVM IR or C as the code generator wrote it.

        Raises
        ------
        UserError
            It has no such text.
        """
        return self.module.source(name)

    @property
    def llvm_ir(self) -> str:
        """LLVM IR text after LLVM's passes."""
        return self.module.optimized_ir

    @property
    def assembly(self) -> str:
        """Assembly text."""
        return self.module.assembly

    def __call__(self, *arguments: object) -> None:
        """Run the kernel on arrays.

        Raises
        ------
        CallError
            An argument does not fit; nothing has been written.
        ProgramError
            An assertion failed; what the outputs hold is undefined.
        OutOfMemory
            There was no memory for its temporaries; what the outputs hold is undefined.
        Exception
            Whatever a function of Python raised that it calls; what the outputs hold is undefined.
        """
        outcome = self._entry(*arguments)
        if outcome is NotImplemented:
            self._call_checked(arguments)
        elif outcome is not None:
            self._raise(Status.of(outcome))

    def _new_entry(self) -> Entry:
        """Return what takes the usual calls, in machine code; others are for `_call_checked`."""
        if self._symbols is not None or not self.module.is_machine_code:
            return declining
        return entry_of(
            self.module.address(self.symbol), self.params, self._apart,
            has_status=bool(self.messages), before=threads.prepare if self._uses_threads else None,
        )  # fmt: skip

    def _call_checked(self, arguments: Sequence[object]) -> None:
        """Check all arguments and run the kernel."""
        if self._symbols is not None:
            self._call_with_symbols(self._symbols, arguments)
            return
        arrays = self._check(arguments)  # keeps converted arrays alive until the call returns
        addresses: list[Any] = [array.ctypes.data for array in arrays]
        for output, other, below, above in self._apart:
            if -below < addresses[output] - addresses[other] < above:
                raise refuse_overlap(self.name, self.params, output, other)
        self.run_unchecked(addresses)

    def call_poisoned(self, byte: int, *arguments: object) -> None:
        """Run the kernel like a call, after filling its temporary buffers with a byte.

        See `dlcompiler.runtime.native.poisoning`: the results show a kernel that reads a temporary
        before writing it.
        """
        poisoned = copy.copy(self)  # a copy, since other threads may call this object
        poisoned._kernel = native.poisoning(self.module.address(self.symbol), byte)
        poisoned._call_checked(arguments)

    def run_unchecked(self, operands: list[Any]) -> None:
        """Run the kernel on addresses of arrays that are known to fit.

        Raises
        ------
        ProgramError, OutOfMemory, Exception
            As of a call.
        """
        status = None
        if self.messages:  # the code takes the address of a status as its last operand
            status = _Status()
            operands.append(ctypes.addressof(status))
        if self._uses_threads:
            threads.prepare()
        self._kernel(*operands)
        if status is not None and status[0] != 0:
            number, *values = status
            self._raise(Status(number, tuple(values), operands[-1]))

    def _raise(self, status: Status) -> NoReturn:
        """Raise the error that the code reported."""
        raised = take_raised(status.address)
        if raised is not None:
            raised.add_note(f"raised by code from outside, in a call of {self.name}")
            raise raised
        message = self.messages[status.number - 1]
        if message.startswith(OutOfMemory.PROBLEM):
            raise OutOfMemory(f"call {self.name}", message)
        raise ProgramError(f"call {self.name}", filled(message, status.values), kind="assertion")

    def _call_with_symbols(self, symbols: Symbols, arguments: Sequence[object]) -> None:
        arrays, values = symbols.bind(self.name, arguments)
        if _READS_DATA_POINTER:
            addresses = [_read_pointer(id(array) + _DATA_OFFSET).value for array in arrays]
        else:
            addresses = [array.ctypes.data for array in arrays]
        sizes = [array.nbytes for array in arrays]
        for output in self._written:
            for other, size in enumerate(sizes):
                distance = addresses[output] - addresses[other]
                if other != output and size and -sizes[output] < distance < size:
                    positions = [n for n, param in enumerate(self.params) if not param.is_number]
                    raise refuse_overlap(
                        self.name, self.params, positions[output], positions[other]
                    )
        self.run_unchecked([*addresses, *values])

    def _check(self, arguments: Sequence[object]) -> list[Array]:
        check_count(self.name, self.params, arguments)
        return [
            as_checked_array(f"call {self.name}: argument {number} ({param.name})", param, argument)
            for number, (param, argument) in enumerate(
                zip(self.params, arguments, strict=True), start=1
            )
        ]

    def __repr__(self) -> str:
        return f"Function({self.name}({', '.join(str(param) for param in self.params)}))"

    def _repr_html_(self) -> str:
        return render("function", self)
