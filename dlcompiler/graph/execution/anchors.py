"""Which operator of the library schedules a kernel, and how its operands are packed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from dlcompiler import dtypes, ops
from dlcompiler.errors import DLCompilerError
from dlcompiler.graph.execution.translations import (
    FIRST_WEIGHT,
    INTEGERS,
    STORED_WEIGHTS,
    TRANSLATIONS,
    Conversion,
    Wanted,
)
from dlcompiler.graph.inference import Types
from dlcompiler.graph.ir import Call, Function, Node, TensorType, calls, tensor_types
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.graph.operators.base import Array, operator_name
from dlcompiler.ops.widening import STORED
from dlcompiler.target import Target
from dlcompiler.te import PlaceholderOp, Tensor

Packing: TypeAlias = Callable[[Array], Array]
"""Returns a weight as the kernel reads it."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """The call of a kernel that an operator of the library computes."""

    call: Call
    sources: tuple[Node, ...]
    """Its arguments; for a weight that the kernel converts, the parameter that stores it."""
    selection: ops.Selection
    inputs: tuple[Tensor, ...]
    """Placeholders for the arguments of the call; some may be computed in the kernel, and several
    may stand for one argument that is given twice."""
    results: tuple[Tensor, ...]
    """Its results: several if the call returns a tuple."""
    packings: Mapping[int, Packing]
    """Arguments that are packed at build."""
    before: Mapping[int, Conversion]
    """Of `Wanted`."""
    after: Conversion | None
    """Of `Wanted`."""


def anchor_of(
    function: Function, types: Types, target: Target, constants: frozenset[int]
) -> Anchor | None:
    """Return the call that an operator of the library computes; None if there is none.

    Parameters
    ----------
    function : Function
        A kernel.
    types : Types
        Types of its nodes.
    target : Target
        The machine.
    constants : frozenset of int
        Parameters of the kernel that are constants of the model: only they can be packed.
    """
    inside = [call for call in calls(function.body) if operator_name(call) in TRANSLATIONS]
    if len(inside) != 1:
        return None
    (call,) = inside
    stored = _stored(call, function, types, target)
    sources = tuple(stored.get(arg, arg) for arg in call.args)
    wanted = _wanted(call, types, target, _is_packed(call, sources, function, constants))
    if wanted is None:
        return None
    if stored:
        if not wanted.weights:
            sources = call.args
        else:
            (dtype,) = {types.tensor(source).dtype for source in stored.values()}
            wanted = replace(wanted, params={**wanted.params, "weight_dtype": dtype})
    try:
        selection = ops.select(wanted.kind, wanted.params, target)
    except DLCompilerError:  # of a dtype or a layout that it does not take
        return None
    chosen = selection.operator.schedule_for(target)
    args = (chosen.define or selection.operator.define)(selection.workload)
    inputs = tuple(t for t in args if isinstance(t.op, PlaceholderOp))
    results = tuple(t for t in args if not isinstance(t.op, PlaceholderOp))
    packings = {n: _packing(selection, wanted.turn, inputs[n]) for n in wanted.weights}
    anchor = Anchor(
        call, sources, selection, inputs, results, packings, wanted.before, wanted.after
    )
    return anchor if _fits(anchor, types) else None


def _stored(call: Call, function: Function, types: Types, target: Target) -> dict[Node, Node]:
    """Return the weights that a kernel converts from 16 bits as it reads them.

    Returns
    -------
    dict
        The conversion -> the parameter that it converts; empty if there is a weight without.
    """
    name = operator_name(call)
    places = STORED_WEIGHTS.get(name, ())
    found: dict[Node, Node] = {}
    for arg in (call.args[place] for place in places if target.device == "cpu"):
        if not isinstance(arg, Call) or operator_name(arg) != "cast":
            return {}
        (source,) = arg.args
        kinds = types[source], types[arg]
        if source not in function.params or not all(isinstance(k, TensorType) for k in kinds):
            return {}
        if types.tensor(source).dtype not in STORED or types.tensor(arg).dtype != "float32":
            return {}
        found[arg] = source
    same = len({types.tensor(source).dtype for source in found.values()}) == 1
    return found if same and len(set(found.values())) == len(places) else {}


def _is_packed(
    call: Call, sources: Sequence[Node], function: Function, constants: frozenset[int]
) -> bool:
    """Tell whether the weights are constants, and only this call reads them."""
    first = FIRST_WEIGHT.get(operator_name(call), -1)
    pairs = zip(call.args[first:], sources[first:], strict=True)
    return all(
        _is_own_constant(source, reader, call, function, constants) for reader, source in pairs
    )


def _is_own_constant(
    weight: Node, given: Node, call: Call, function: Function, constants: frozenset[int]
) -> bool:
    """Tell whether a weight is a constant that only a call reads, perhaps by a conversion."""
    if weight not in function.params or call.args.count(given) > 1:
        return False
    readers = [each for each in calls(function.body) if given in each.args]
    if given is not weight and [e for e in calls(function.body) if weight in e.args] != [given]:
        return False
    return function.params.index(weight) in constants and readers == [call]


def _wanted(call: Call, types: Types, target: Target, is_packed: bool) -> Wanted | None:
    kinds = [types[arg] for arg in call.args]
    tensors = [kind for kind in kinds if isinstance(kind, TensorType)]
    name = operator_name(call)
    is_mixed = len({kind.dtype for kind in tensors}) > 1 and name not in INTEGERS
    if len(tensors) < len(kinds) or is_mixed:
        return None
    return TRANSLATIONS[name](REGISTRY[name].complete(call), tensors, target, is_packed)


def _packing(selection: ops.Selection, turn: tuple[int, ...], packed: Tensor) -> Packing:
    def pack(array: Array) -> Array:
        turned = array.transpose(turn) if turn else array
        plain = np.ascontiguousarray(turned.astype(dtypes.to_numpy(packed.dtype), copy=False))
        return selection.operator.prepack(selection.workload, {packed.name: plain})[packed.name]

    return pack


def _fits(anchor: Anchor, types: Types) -> bool:
    """Tell whether the operator takes and returns tensors of the call's types."""
    results = anchor.results if anchor.after is None else tuple(map(anchor.after, anchor.results))
    pairs = list(zip(results, tensor_types(types[anchor.call]), strict=False))
    if len(pairs) < len(anchor.results):
        return False
    for n, (tensor, arg) in enumerate(zip(anchor.inputs, anchor.call.args, strict=False)):
        if n not in anchor.packings and n not in anchor.before:
            pairs.append((tensor, types.tensor(arg)))
    fits = len(anchor.inputs) == len(anchor.call.args)
    return fits and all(t.static_shape == k.shape and t.dtype == k.dtype for t, k in pairs)
