"""Inputs of a measured model: shapes that the file leaves open, and arrays."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.errors import UserError
from dlcompiler.graph.ir import ANY, Module, TensorType

Array = npt.NDArray[Any]
OPERATION = "measure a model"
MOST_ELEMENTS = 1 << 31
"""Most elements of an input; [1]."""


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a measured model."""

    name: str
    array: Array
    is_random: bool
    """Whether its values are random; otherwise they were given."""

    @property
    def dtype(self) -> str:
        """Its dtype."""
        return dtypes.from_numpy(self.array.dtype)

    def __str__(self) -> str:
        shape = "x".join(map(str, self.array.shape)) or "scalar"
        return f"{self.name}: {self.dtype} {shape}, {'random' if self.is_random else 'given'}"

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, without its elements."""
        return {
            "name": self.name, "dtype": self.dtype, "shape": list(self.array.shape),
            "random": self.is_random,
        }  # fmt: skip


def known_shapes(
    declared: Mapping[str, TensorType | None], given: Mapping[str, Sequence[int]]
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the inputs whose extents a model leaves open.

    Parameters
    ----------
    declared : mapping
        Inputs of the model: the type of each, or None if the number of its dimensions is open.
    given : mapping
        Shapes from the user, by the names of inputs.

    Returns
    -------
    dict
        The given shapes; and, where only the first extent of an input is open, its shape with 1:
        the first dimension counts the examples of a batch.

    Raises
    ------
    UserError
        A name is unknown, a shape does not fit its input, or another extent is open.
    """
    found = {}
    _check_names(given, declared)
    for name, shape in given.items():
        if not _fits(shape, declared[name]):
            raise UserError(
                OPERATION, f"the shape does not fit input {name}", got=_text(shape),
                expected=str(declared[name]),
            )  # fmt: skip
        found[name] = tuple(shape)
    rest = {name: kind for name, kind in declared.items() if name not in found}
    unknown = {name: kind for name, kind in rest.items() if kind is None or ANY in kind.shape[1:]}
    if unknown:
        shapes = ", ".join(f"{name}: {kind or 'any shape'}" for name, kind in unknown.items())
        examples = " ".join(f"--shape {name}={_example(kind)}" for name, kind in unknown.items())
        raise UserError(
            OPERATION, "the model leaves shapes of inputs open", got=shapes,
            hint=f"give them, as with {examples}",
        )  # fmt: skip
    return found | {
        name: (1, *(n for n in kind.shape[1:] if isinstance(n, int)))
        for name, kind in rest.items()
        if kind is not None and not kind.is_static
    }


def constants_of(
    declared: Mapping[str, TensorType | None], given: Mapping[str, Any]
) -> dict[str, Array]:
    """Return values of inputs as arrays of the types that a model declares.

    Parameters
    ----------
    declared : mapping
        As of `known_shapes`.
    given : mapping
        Values from the user, by the names of inputs.

    Raises
    ------
    UserError
        A name is unknown, or a value does not fit its input.
    """
    _check_names(given, declared)
    found = {}
    for name, value in given.items():
        kind = declared[name]
        found[name] = np.asarray(value) if kind is None else _fitting(name, value, kind)
    return found


def _check_names(given: Iterable[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise UserError(
                OPERATION, "there is no such input", got=name, expected=", ".join(known) or "none"
            )


def _fits(shape: Sequence[int], kind: TensorType | None) -> bool:
    return kind is None or (
        len(shape) == kind.rank
        and all(not isinstance(n, int) or n == m for n, m in zip(kind.shape, shape, strict=True))
    )


def _example(kind: TensorType | None) -> str:
    """Return a shape of a type, with 1 for each open extent."""
    return _text([n if isinstance(n, int) else 1 for n in kind.shape] if kind else [1, 3])


def _text(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def inputs_of(module: Module, given: Mapping[str, Any], seed: int = 0) -> list[Input]:
    """Return an array for each parameter of a model.

    Parameters
    ----------
    module : Module
        The model; the shapes of its parameters are known.
    given : mapping
        Values from the user, by the names of parameters.
    seed : int
        Seed of the others: floats from -1 to 1, and whole numbers that are 0 or 1, which are
        indices of every table with two rows.

    Raises
    ------
    UserError
        A name is unknown, or a value does not fit its parameter.
    """
    kinds = {}
    for param in module.main.params:
        assert isinstance(param.type, TensorType)
        kinds[param.name] = param.type
    _check_names(given, kinds)
    generator = np.random.default_rng(seed)
    return [
        Input(name, _fitting(name, given[name], kind), is_random=False)
        if name in given
        else Input(name, _random(name, kind, generator), is_random=True)
        for name, kind in kinds.items()
    ]


def _random(name: str, kind: TensorType, generator: np.random.Generator) -> Array:
    shape = tuple(n for n in kind.shape if isinstance(n, int))
    if math.prod(shape) > MOST_ELEMENTS:
        raise UserError(OPERATION, f"input {name} has too many elements", got=str(kind))
    if dtypes.is_float(kind.dtype):
        return generator.uniform(-1, 1, shape).astype(dtypes.to_numpy(kind.dtype))
    return generator.integers(0, 2, shape).astype(dtypes.to_numpy(kind.dtype))


def _with_rank(array: Array, kind: TensorType) -> Array:
    """Return numbers in the shape of a type, if they fit it."""
    shape = tuple(n for n in kind.shape if isinstance(n, int))
    if kind.is_static and math.prod(shape) == array.size:
        return array.reshape(shape)
    return array.reshape(-1) if kind.rank == 1 else array


def _fitting(name: str, value: Any, kind: TensorType) -> Array:
    """Return a value as an array of a type; refuse another shape, or a number that it changes.

    Numbers that are no array have no shape of their own: they get that of the type.
    """
    array = np.asarray(value)
    if not isinstance(value, np.ndarray):
        array = _with_rank(array, kind)
    if not _fits(array.shape, kind):
        raise UserError(
            OPERATION, f"the value does not fit input {name}", got=f"shape {_text(array.shape)}",
            expected=str(kind),
        )  # fmt: skip
    with np.errstate(all="ignore"):
        made = array.astype(dtypes.to_numpy(kind.dtype))
    is_whole = not dtypes.is_float(kind.dtype)
    if is_whole and not np.array_equal(made.astype(array.dtype), array):
        raise UserError(
            OPERATION, f"a number of input {name} is none of its dtype", got=str(array.dtype),
            expected=str(kind),
        )  # fmt: skip
    return made
