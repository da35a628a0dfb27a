"""Templates of users: a definition, and a schedule function that declares its knobs.

::

    def scale(n: int, m: int):
        A = te.placeholder((n, m), name="A")
        return A, te.compute((n, m), lambda i, j: A[i, j] * 2.0, name="B")

    @template(scale)
    def SCALE(s, outs, cfg, target):
        (B,) = outs
        i, j = B.op.axis
        cfg.define_split("tile", j, num_outputs=2, policy="power2")
        _, inner = cfg["tile"].apply(s, B, j)
        s[B].vectorize(inner)

    run = tune(SCALE.workload(n=64, m=1000), template=SCALE)
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from dlcompiler.errors import TuningError
from dlcompiler.json_text import JsonError, parse
from dlcompiler.measurement.oracle import oracle_of
from dlcompiler.ops import DeviceSchedule, Operator, Reference, by_device
from dlcompiler.ops import names as library
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.space import Choices, Choosing, Config, Declaring, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import PlaceholderOp, Tensor

Define: TypeAlias = Callable[..., Sequence[Tensor]]
Apply: TypeAlias = Callable[[Schedule, Sequence[Tensor], Choices, Target], None]
_JSON = "json:"
"""Prefix of a parameter that is neither a number nor a name."""
_KEPT_SPACES = 8


def template(
    define: Define,
    *,
    name: str | None = None,
    default: Mapping[str, Any] | None = None,
    device: str = "cpu",
) -> Callable[[Apply], Operator]:
    """Make an operator from a definition and the decorated schedule function, which declares knobs.

    Parameters
    ----------
    define : callable
        Returns the kernel's parameters as tensors, inputs first, outputs last. Its own parameters
        are the workload's: numbers, names, tuples.
    name : str, optional
        Name of the operator; by default that of `define`. Names of the library are refused.
    default : mapping, optional
        Values of the knobs that are tried first; by default, the first that are allowed.
    device : str
        Kind of device (`Target.device`) that the schedule is for. `declared_schedule` makes the
        operator's schedules for other kinds.

    Returns
    -------
    callable
        Takes ``schedule(s, outs, cfg, target)``, which declares knobs in `cfg` (`space.Choices`),
        reads them there, and changes `s`. It reads nothing else, and does the same each time.

    Raises
    ------
    TuningError
        The name is one of the library, or cannot be that of a kernel.

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.target import resolve
    >>> def double(n: int):
    ...     A = te.placeholder((n,), name="A")
    ...     return A, te.compute((n,), lambda i: A[i] * 2.0, name="B")
    >>> @template(double)
    ... def DOUBLE(s, outs, cfg, target):
    ...     (axis,) = outs[0].op.axis
    ...     cfg.define_split("tile", axis, num_outputs=2, filter=lambda x: x.size[-1] >= 2)
    ...     _, inner = cfg["tile"].apply(s, outs[0], axis)
    ...     s[outs[0]].vectorize(inner)
    >>> DOUBLE.space(DOUBLE.workload(n=12), resolve("cpu"))
    Space(double(n=12); 5 points: tile:5)
    """
    known = str(name or getattr(define, "__name__", "template"))
    if not known.isidentifier():
        raise TuningError(
            "make a template", "the name is not an identifier", got=repr(known),
            hint="template(define, name=…)",
        )  # fmt: skip
    if known in library():
        raise TuningError(
            "make a template", "the library has an operator of this name", got=repr(known),
            hint="template(define, name=…)",
        )  # fmt: skip

    def decorate(apply: Apply) -> Operator:
        return _operator(known, define, apply, default, device)

    return decorate


def _operator(
    name: str, define: Define, apply: Apply, default: Mapping[str, Any] | None, device: str
) -> Operator:
    def workload(**parameters: Any) -> Workload:
        return workload_of(name, define, parameters)

    def tensors(work: Workload) -> tuple[Tensor, ...]:
        return tuple(define(**parameters_of(work)))

    def reference(work: Workload, seed: int) -> Reference:
        return reference_of(tensors(work), seed)

    schedules = by_device({device: declared_schedule(tensors, apply, default)})
    return Operator(name, workload, tensors, reference, schedules)


def declared_schedule(
    define: Callable[[Workload], Sequence[Tensor]],
    apply: Apply,
    default: Mapping[str, Any] | None = None,
) -> DeviceSchedule:
    """Make a schedule for a kind of device from a function that declares its knobs.

    Parameters
    ----------
    define : callable
        Returns the kernel's parameters of a workload: `Operator.define`.
    apply : callable
        ``schedule(s, outs, cfg, target)``, as `template` decorates it.
    default : mapping, optional
        Values of the knobs that are tried first; by default, the first that are allowed.

    Examples
    --------
    Give an operator of the library a schedule for GPUs::

        def threads(s, outs, cfg, target):
            ...

        add = ops.operator("elementwise")
        add.schedules["gpu"] = declared_schedule(add.define, threads)
    """

    @lru_cache(maxsize=_KEPT_SPACES)
    def space(work: Workload, target: Target) -> Space:
        cfg = Declaring()
        outs = _outputs(define(work))
        apply(create_schedule(outs), outs, cfg, target)
        return cfg.space(work)

    def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
        apply(s, outs, Choosing(cfg), target)

    def default_config(work: Workload, target: Target) -> Config:
        return first_config(space(work, target), default)

    return DeviceSchedule(space, default_config, schedule)


def first_config(space: Space, default: Mapping[str, Any] | None = None) -> Config:
    """Return the config with the given values, or the first one that the filters allow.

    Raises
    ------
    TuningError
        The filters allow no config, or not the one with the given values.
    """
    if default is not None:
        return space.config(**default)
    first = next(space.allowed(), None)
    if first is None:
        raise TuningError(
            f"search {space!r}", "no point of the space is allowed",
            expected="; ".join(item.rule for item in space.filters),
        )  # fmt: skip
    return space.at(first)


def reference_of(args: Sequence[Tensor], seed: int) -> Reference:
    """Return random inputs of a kernel, and the outputs that `te.evaluate` computes.

    Parameters
    ----------
    args : sequence of Tensor
        The kernel's parameters.
    seed : int
        Seed of the inputs.

    Returns
    -------
    Reference
        With the bound of `te.tolerance`.
    """
    outs = _outputs(args)
    oracle = oracle_of(create_schedule(outs), seed)
    inputs = {tensor.name: oracle.inputs[tensor] for tensor in args if tensor not in outs}
    expected = {tensor.name: oracle.expected[tensor] for tensor in outs}
    return Reference(inputs, expected, {tensor.name: oracle.bounds[tensor] for tensor in outs})


def _outputs(args: Sequence[Tensor]) -> list[Tensor]:
    return [tensor for tensor in args if not isinstance(tensor.op, PlaceholderOp)]


# -- parameters ---------------------------------------------------------------------------------


def workload_of(name: str, define: Callable[..., Any], parameters: Mapping[str, Any]) -> Workload:
    """Return the workload of a function's arguments, in the order of its parameters.

    Raises
    ------
    TuningError
        They do not fit the function's parameters, or one of them cannot be stored.
    """
    try:
        bound = inspect.signature(define).bind(**parameters)
    except TypeError as error:
        raise TuningError(f"workload {name}", str(error), got=", ".join(parameters)) from None
    bound.apply_defaults()
    pairs = ((key, _stored(name, key, value)) for key, value in bound.arguments.items())
    return Workload(name, tuple(pairs))


def parameters_of(workload: Workload) -> dict[str, Any]:
    """Return the arguments of a workload that `workload_of` made; lists become tuples."""
    return {key: _given(value) for key, value in workload.params}


def _stored(name: str, key: str, value: Any) -> int | str:
    if type(value) is int or (isinstance(value, str) and not value.startswith(_JSON)):
        return value
    try:
        return _JSON + json.dumps(value, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError):
        raise TuningError(
            f"workload {name}", f"the parameter {key} is no data", got=repr(value),
            expected="numbers, names, and tuples of them",
        ) from None  # fmt: skip


def _given(value: int | str) -> Any:
    if isinstance(value, str) and value.startswith(_JSON):
        try:
            return _as_tuples(parse(value.removeprefix(_JSON)))
        except JsonError as error:
            raise TuningError(
                "read the parameters of a workload", "not data", got=str(error)
            ) from None
    return value


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value
