"""Samples of operators from PyTorch's own tests (``op_db``), imported and compared."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

from dlcompiler import graph
from dlcompiler.errors import DLCompilerError
from dlcompiler.graph.frontends.torch import importer, tracing
from dlcompiler.graph.frontends.torch.package import array_of, type_of


@dataclass(frozen=True)
class Outcome:
    """What became of a sample: ``pass``, ``refused``, ``wrong``, ``crash`` or ``skip``; and why."""

    name: str
    kind: str
    reason: str = ""


def operators() -> list[Any]:
    """Return the operators of the collection that take float32, and whose results are defined."""
    return [info for info in op_db if torch.float32 in info.dtypes and "empty" not in info.name]


def samples(info: Any) -> Iterator[Any]:
    """Yield the samples of an operator, the same ones each time."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from info.sample_inputs("cpu", torch.float32, requires_grad=False)


def try_sample(info: Any, sample: Any, *, compiled: bool = False) -> Outcome:
    """Import the operator with the arguments of a sample, and compare what it computes."""
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def function(*tensors: Any) -> Any:
        given = list(leaves)
        for n, tensor in zip(places, tensors, strict=True):
            given[n] = tensor
        args = pytree.tree_unflatten(given, spec)
        return info.op(args[0], *args[1], **args[2])

    tensors = [leaves[n] for n in places]
    try:
        expected = function(*(tensor.clone() for tensor in tensors))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = tracing.traced(function, tensors)
    except Exception as error:  # what PyTorch itself cannot run or trace
        return Outcome(info.name, "skip", f"{type(error).__name__}: {error}"[:200])
    wanted = [each for each in pytree.tree_leaves(expected) if isinstance(each, torch.Tensor)]
    try:
        params = [
            graph.Var(f"x{n}", type_of(tensor, "an input")) for n, tensor in enumerate(tensors)
        ]
        results = importer.flat(importer.GraphImporter(traced).run(params))
        module = graph.Module({"main": graph.Function(tuple(params), graph.Tuple(tuple(results)))})
        arrays = [array_of(tensor) for tensor in tensors]
        found = graph.build(module)(*arrays) if compiled else graph.evaluate(module, *arrays)
    except DLCompilerError as error:
        return Outcome(info.name, "refused", str(error)[:400])
    except Exception as error:  # a mistake of the importer
        return Outcome(info.name, "crash", f"{type(error).__name__}: {error}"[:400])
    for got, want in zip(found, wanted, strict=True):
        problem = _difference(np.asarray(got), array_of(want))
        if problem:
            return Outcome(info.name, "wrong", problem)
    return Outcome(info.name, "pass")


def _difference(got: Any, want: Any) -> str:
    """Return how two arrays differ, beyond what the order of sums explains; or ''."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype} {got.shape} instead of {want.dtype} {want.shape}"
    if want.dtype.kind == "f":
        is_same = np.allclose(got, want, rtol=2e-4, atol=2e-5, equal_nan=True)
    else:
        is_same = np.array_equal(got, want)
    if is_same:
        return ""
    return f"{got.ravel()[:4]} instead of {want.ravel()[:4]}"
