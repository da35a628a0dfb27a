"""The functions that make calls of operators, with Relay's arguments and results.

Most are those of the operator table. The others differ: in the order of arguments, or because
Relay's function makes several calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from dlcompiler import graph
from dlcompiler.compat.missing import refuse_name
from dlcompiler.compat.relay.expressions import TupleWrapper, as_expr
from dlcompiler.graph import op
from dlcompiler.graph.op import OperatorFunction
from dlcompiler.graph.operators import REGISTRY


class RelayFunction:
    """The function that makes calls of one operator; results that are tuples can be unpacked."""

    def __init__(self, name: str) -> None:
        made = OperatorFunction(name)
        self.__name__, self.__doc__ = name, made.__doc__
        self.__signature__ = made.__signature__

    def __call__(self, *args: Any, **attrs: Any) -> Any:
        """Make a call."""
        count = len(REGISTRY[self.__name__].inputs)
        inputs = [as_expr(arg) for arg in args[:count]]
        values = {key: _plain(value) for key, value in attrs.items()}
        call = OperatorFunction(self.__name__)(*inputs, *map(_plain, args[count:]), **values)
        size = FIELDS.get(self.__name__, _one)(call)
        return call if size is None else TupleWrapper(call, size)

    def __repr__(self) -> str:
        return f"<function relay.{self.__name__}>"


def _plain(value: Any) -> Any:
    """Return an attribute: a scalar constant as its number."""
    if isinstance(value, graph.Constant) and value.value.ndim == 0:
        return value.value.item()
    if isinstance(value, TupleWrapper):
        return value.tuple_value
    return value


def _one(call: graph.Call) -> int | None:
    return None


def _parts(call: graph.Call) -> int:
    parts = REGISTRY["split"].complete(call)["indices_or_sections"]
    return parts if isinstance(parts, int) else len(parts) + 1


def _of_topk(call: graph.Call) -> int | None:
    return 2 if REGISTRY["topk"].complete(call)["ret_type"] == "both" else None


def _of_meshgrid(call: graph.Call) -> int | None:
    data = call.args[0]
    return len(data.fields) if isinstance(data, graph.Tuple) else None


FIELDS: Mapping[str, Callable[[graph.Call], int | None]] = MappingProxyType(
    {
        "split": _parts,
        "topk": _of_topk,
        "meshgrid": _of_meshgrid,
        "nn.batch_norm": lambda call: 3,
        "nn.dropout": lambda call: 2,
    }
)
"""Operator -> the number of fields of its result; None: its result is no tuple."""


# -- functions that differ -------------------------------------------------------------------------


def dropout(data: Any, rate: float = 0.5) -> graph.TupleGetItem:
    """Return the data: nothing is dropped when a model is not trained."""
    return op.nn.dropout(as_expr(data), rate=rate)[0]


def pad(data: Any, pad_width: Any, pad_value: Any = 0, pad_mode: str = "constant") -> graph.Call:
    """Pad each dimension.

    Parameters
    ----------
    data : Expr
        The data.
    pad_width : sequence of pairs
        Elements before and after, for each dimension; [1].
    pad_value : number or Expr
        What is put there.
    pad_mode : str
        ``"constant"``, ``"edge"`` or ``"reflect"``.
    """
    return op.nn.pad(
        as_expr(data), as_expr(pad_value), pad_width=_plain(pad_width), pad_mode=pad_mode
    )


def gather(data: Any, axis: int, indices: Any) -> graph.Call:
    """Take elements along an axis."""
    return op.gather(as_expr(data), as_expr(indices), axis=_plain(axis))


def scatter(data: Any, indices: Any, updates: Any, axis: int) -> graph.Call:
    """Put elements along an axis: Relay's older name of `scatter_elements`."""
    return op.scatter_elements(as_expr(data), as_expr(indices), as_expr(updates), axis=axis)


def scatter_add(data: Any, indices: Any, updates: Any, axis: int) -> graph.Call:
    """Add elements along an axis: Relay's older form of `scatter_elements`."""
    return op.scatter_elements(
        as_expr(data), as_expr(indices), as_expr(updates), axis=axis, reduction="add"
    )


def variance(
    data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False,
    unbiased: bool = False, with_mean: Any = None,
) -> graph.Call:  # fmt: skip
    """Return the variance along axes; it computes the mean unless `with_mean` gives it."""
    data = as_expr(data)
    mean = op.mean(data, axis=axis, keepdims=True, exclude=exclude)
    given = mean if with_mean is None else as_expr(with_mean)
    return op.variance(
        data, given, axis=axis, keepdims=keepdims, exclude=exclude, unbiased=unbiased
    )


def std(
    data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False,
    unbiased: bool = False,
) -> graph.Call:  # fmt: skip
    """Return the standard deviation along axes."""
    return op.sqrt(variance(data, axis, keepdims, exclude, unbiased))


def mean_variance(
    data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False,
    unbiased: bool = False,
) -> TupleWrapper:  # fmt: skip
    """Return the mean and the variance along axes."""
    data = as_expr(data)
    mean = op.mean(data, axis=axis, keepdims=keepdims, exclude=exclude)
    var = variance(data, axis, keepdims, exclude, unbiased)
    return TupleWrapper(graph.Tuple((mean, var)), 2)


def mean_std(
    data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False
) -> TupleWrapper:
    """Return the mean and the standard deviation along axes."""
    mean, var = mean_variance(data, axis, keepdims, exclude)
    return TupleWrapper(graph.Tuple((mean, op.sqrt(var))), 2)


DIFFERENT: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "nn.dropout": dropout,
        "nn.dropout_raw": RelayFunction("nn.dropout"),
        "nn.pad": pad,
        "gather": gather,
        "scatter": scatter,
        "scatter_add": scatter_add,
        "variance": variance,
        "std": std,
        "mean_variance": mean_variance,
        "mean_std": mean_std,
    }
)
"""Relay's name of a function -> what it is here, where the operator table has another one."""


def names(prefix: str = "") -> list[str]:
    """Return the names of the functions that begin with a prefix, without it.

    Parameters
    ----------
    prefix : str
        ``"nn."``; "" for those without a dot.
    """
    known = (*REGISTRY, *DIFFERENT)
    rest = {name.removeprefix(prefix) for name in known if name.startswith(prefix)}
    return sorted(name for name in rest if "." not in name)


def finder(module: str, prefix: str = "") -> Callable[[str], Any]:
    """Return a module's ``__getattr__``, which finds the functions of operators.

    Parameters
    ----------
    module : str
        Classic name of the module: ``"tvm.relay.nn"``.
    prefix : str
        What the names of its operators begin with: ``"nn."``.
    """

    def find(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        whole = prefix + name
        if whole in DIFFERENT:
            return DIFFERENT[whole]
        if whole in REGISTRY:
            return RelayFunction(whole)
        refuse_name(f"{module}.{name}", names(prefix))

    return find
