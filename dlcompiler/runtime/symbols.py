"""Infer the values of symbols from the arguments of a call, and check them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import CallError
from dlcompiler.runtime.arguments import (
    Array,
    Param,
    as_array,
    as_checked_array,
    as_checked_number,
    check_count,
    check_rank,
)
from dlcompiler.runtime.formulas import Formula, compiled, text

C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400  # NumPy's C API, numpy/ndarraytypes.h


@dataclass(frozen=True, slots=True)
class Variable:
    """A number that machine code takes after the arrays."""

    name: str
    dtype: str


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on symbols that a call must fulfil, and the error if it does not."""

    condition: Formula
    problem: str


class Symbols:
    """Infer the values of a kernel's variables from the arguments of a call.

    Parameters
    ----------
    params : sequence of Param
        The parameters of the kernel.
    variables : sequence of Variable
        The numbers that its machine code takes after the arrays, in order.
    checks : sequence of Check
        Conditions that the values must satisfy.
    """

    def __init__(
        self, params: Sequence[Param], variables: Sequence[Variable], checks: Sequence[Check]
    ) -> None:
        self.params = tuple(params)
        self.variables = tuple(variables)
        self.checks = tuple(checks)
        self._sources = _sources(self.params)
        self._numbers = [(n, p.name, _types(p)) for n, p in enumerate(params) if p.is_number]
        self._arrays = [
            (n, dtypes.to_numpy(p.dtype), _flags(p), [compiled(extent) for extent in p.shape])
            for n, p in enumerate(params)
            if not p.is_number
        ]
        self._conditions = [compiled(check.condition) for check in checks]
        self._order = [variable.name for variable in variables]

    def bind(self, kernel: str, arguments: Sequence[object]) -> tuple[list[Array], list[Any]]:
        """Return the arrays of a call, checked, and the values of the variables, in order.

        Raises
        ------
        CallError
            An argument does not fit, two shapes disagree, or a check fails.
        """
        values = self._quick(arguments)
        if values is None:
            return self._careful(kernel, arguments)
        arrays: list[Any] = [arguments[array[0]] for array in self._arrays]
        return arrays, [values[name] for name in self._order]

    def _quick(self, arguments: Sequence[Any]) -> dict[str, Any] | None:
        """Return the variables' values if the arguments pass the fast checks; else None."""
        if len(arguments) != len(self.params):
            return None
        values: dict[str, Any] = {}
        for position, name, types in self._numbers:
            value = arguments[position]
            if type(value) not in types or not -(2**48) <= value <= 2**48:
                return None
            values[name] = value
        for position, dtype, flags, extents in self._arrays:
            array = arguments[position]
            if (
                type(array) is not np.ndarray
                or array.dtype is not dtype
                or array.flags.num & flags != flags
                or array.ndim != len(extents)
            ):
                return None
        for name, position, dimension in self._sources:
            values[name] = arguments[position].shape[dimension]
        for position, _, _, extents in self._arrays:
            if arguments[position].shape != tuple([extent(values) for extent in extents]):
                return None
        return values if all(condition(values) for condition in self._conditions) else None

    def _careful(self, kernel: str, arguments: Sequence[object]) -> tuple[list[Array], list[Any]]:
        check_count(kernel, self.params, arguments)
        operations = [
            f"call {kernel}: argument {n} ({p.name})" for n, p in enumerate(self.params, 1)
        ]
        triples = list(zip(operations, self.params, arguments, strict=True))
        values: dict[str, Any] = {
            param.name: as_checked_number(operation, param.dtype, argument)
            for operation, param, argument in triples
            if param.is_number
        }
        source_of = dict.fromkeys(values, "the number given")
        for operation, param, argument in triples:
            if not param.is_number:
                array = as_array(operation, param, argument)
                check_rank(operation, param, array)
                _bind(operation, param, array, values, source_of)
        arrays = [
            as_checked_array(operation, param.at(values), argument)
            for operation, param, argument in triples
            if not param.is_number
        ]
        self._refuse_bad_values(kernel, values)
        return arrays, [values[name] for name in self._order]

    def _refuse_bad_values(self, kernel: str, values: Mapping[str, Any]) -> None:
        for check, condition in zip(self.checks, self._conditions, strict=True):
            if not condition(values):
                used = ", ".join(f"{name} = {value}" for name, value in values.items())
                raise CallError(
                    f"call {kernel}", check.problem, got=used, expected=text(check.condition)
                )


def _sources(params: Sequence[Param]) -> list[tuple[str, int, int]]:
    """Return where each symbol is first bound: (name, argument, dimension)."""
    known = {param.name for param in params if param.is_number}
    found = []
    for position, param in enumerate(params):
        for dimension, extent in enumerate(param.shape):
            if isinstance(extent, str) and extent not in known:
                known.add(extent)
                found.append((extent, position, dimension))
    return found


def _bind(
    operation: str, param: Param, array: Array, values: dict[str, Any], source_of: dict[str, str]
) -> None:
    """Bind symbols to the extents of an array, or refuse a shape that contradicts a bound symbol.

    `source_of` names the argument or dimension that each symbol was bound by, for error texts.
    """
    for dimension, (extent, size) in enumerate(zip(param.shape, array.shape, strict=True)):
        if not isinstance(extent, str):
            continue
        if values.setdefault(extent, size) != size:
            raise CallError(
                operation,
                f"{extent} is both {values[extent]} and {size}",
                got=f"{size} in dimension {dimension}",
                expected=f"{values[extent]}, as {source_of[extent]} says",
            )
        source_of.setdefault(extent, f"dimension {dimension} of {param.name}")


def _types(param: Param) -> tuple[type, ...]:
    """Return the Python types that the fast check accepts; none for dtypes of a narrow range."""
    if param.dtype == "bool":
        return (bool,)
    if dtypes.is_int(param.dtype):
        return ()
    return (int,) if param.dtype == "index" else (float, int)


def _flags(param: Param) -> int:
    return C_CONTIGUOUS | ALIGNED | (WRITEABLE if param.is_output else 0)
