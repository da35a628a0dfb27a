"""Quantize a trained model: choose, calibrate, rewrite, and compare."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dlcompiler.errors import GraphError
from dlcompiler.graph.execution import build
from dlcompiler.graph.ir import Expr, Module, Node, Tuple
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.quantization.calibrate import METHODS, Method, Range, ranges_of
from dlcompiler.graph.quantization.choose import OPERATION, Plan, plan_of, prepared
from dlcompiler.graph.quantization.report import LayerError, layer_errors
from dlcompiler.graph.quantization.rewrite import rewritten

DEFAULT_PERCENTILE = 99.99


@dataclass(frozen=True)
class Quantized:
    """A quantized model."""

    module: Module
    """It has `qnn.quantize` and `qnn.dequantize` around values: `build` makes integer kernels."""
    layers: tuple[LayerError, ...]
    """How its layers differ from those of the model on the calibration data; () without report."""


def quantize(
    module: Module,
    calibration: Iterable[Any],
    *,
    method: Method = "min-max",
    percentile: float = DEFAULT_PERCENTILE,
    per_channel: bool = True,
    symmetric: bool = False,
    skip: Collection[str] = (),
    params: Mapping[str, Array] | None = None,
    report: bool = True,
) -> Quantized:
    """Quantize a trained model to 8 bits.

    Parameters
    ----------
    module : Module
        The model, in float32, with weights that are constants.
    calibration : iterable
        Inputs that are like those of later runs: arrays; or tuples of arrays for a model with
        several inputs; or mappings by name.
    method : {"min-max", "percentile", "kl"}
        How the range of a value follows from the calibration: all of it; all but a share of the
        largest values; or the part that loses the least information (the Kullback-Leibler
        divergence of the histograms, "entropy" elsewhere).
    percentile : float
        Share of the values inside the range by ``method="percentile"``; [%].
    per_channel : bool
        Give each output channel of the weights a scale of its own.
    symmetric : bool
        Store values as int8 with the zero point 0. Otherwise as uint8 with a zero point, which is
        more exact where most values have one sign. Weights are always symmetric.
    skip : collection of str
        Names of convolutions and products that stay in float32.
    params : mapping, optional
        Weights by the names of parameters of the model.
    report : bool
        Compare the layers of both models.

    Returns
    -------
    Quantized

    Raises
    ------
    GraphError
        An option is wrong, there is no calibration data, or a value of it is infinite or NaN.

    Notes
    -----
    Batch normalisation is folded into weights first. Convolutions and products with constant
    weights are quantized, and the values that they read; so are their results, with bias and
    activation, where they are added or pooled. Results of the model stay float32.
    """
    _check(method, percentile, skip, calibration)
    plan = plan_of(prepared(module, params or {}), skip)
    inputs = [_arguments(plan.module, given) for given in calibration]
    if not inputs:
        raise GraphError(OPERATION, "there is no calibration data")
    floats = _values(plan.module, plan.points)
    names = [getattr(point, "name", "") for point in plan.points]
    batches = [floats(*given) for given in inputs]
    ranges: dict[Node, Range] = dict(
        zip(plan.points, ranges_of(batches, names, method, percentile), strict=True)
    )
    after, made = rewritten(plan, ranges, per_channel=per_channel, symmetric=symmetric)
    layers = _layers(plan, made, inputs) if report else ()
    return Quantized(after, layers)


def _check(method: object, percentile: object, skip: object, calibration: object) -> None:
    if method not in METHODS:
        raise GraphError(OPERATION, "no such method", got=repr(method), expected=", ".join(METHODS))
    if not isinstance(percentile, int | float) or not 50 < percentile <= 100:
        raise GraphError(OPERATION, "percentile is out of range", got=repr(percentile),
                         expected="a number above 50, and at most 100")  # fmt: skip
    if isinstance(skip, str) or not isinstance(skip, Collection):
        raise GraphError(OPERATION, "skip is no list of names", got=repr(skip),
                         expected='names of calls, such as ["head"]')  # fmt: skip
    if isinstance(calibration, str) or not isinstance(calibration, Iterable):
        raise GraphError(OPERATION, "the calibration data cannot be iterated over",
                         got=type(calibration).__name__, expected="a list of inputs")  # fmt: skip


def _arguments(module: Module, given: Any) -> tuple[Any, ...]:
    """Return the inputs of a model in the order of its parameters."""
    if isinstance(given, Mapping):
        names = [param.name for param in module.main.params]
        if missing := [name for name in names if name not in given]:
            raise GraphError(OPERATION, "the calibration data has no such input", got=missing[0],
                             expected=", ".join(map(str, given)))  # fmt: skip
        return tuple(given[name] for name in names)
    return tuple(given) if isinstance(given, tuple | list) else (given,)


def _values(module: Module, values: Sequence[Expr]) -> Any:
    """Return a model that computes some values of a module."""
    main = replace(module.main, body=Tuple(tuple(values)), result=None)
    return build(Module({"main": main}))


def _layers(
    plan: Plan, made: Mapping[Any, Expr], inputs: Sequence[tuple[Any, ...]]
) -> tuple[LayerError, ...]:
    """Compare the results of the layers of both models."""
    exact = _values(plan.module, list(plan.results.values()))
    found = _values(plan.module, [made[result] for result in plan.results.values()])
    names = [call.name for call in plan.results]
    pairs = (
        ([np.asarray(x) for x in exact(*given)], [np.asarray(x) for x in found(*given)])
        for given in inputs
    )
    return layer_errors(names, pairs)
