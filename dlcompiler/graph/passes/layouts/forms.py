"""The forms of a call: which layouts its operands and results have now, and which they could have.

The layout of a value is known if it comes from an operator that names the layout of its images, or
from one with a layout rule behind such an operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from dlcompiler.errors import GraphError
from dlcompiler.graph.inference import Types
from dlcompiler.graph.ir import (
    Call,
    Function,
    Node,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    children,
    post_order,
)
from dlcompiler.graph.operators import REGISTRY, CallTypes, NotKnown, Result
from dlcompiler.graph.operators.attributes import completed
from dlcompiler.graph.operators.layouts import Layouts, layout_of

Known: TypeAlias = tuple[str, ...]
"""Layout of a tensor, or of each field of a tuple; "" where it is not known."""
NO_LAYOUT: Known = ("",)
BROADCAST = frozenset({("lhs", "rhs"), ("condition", "x", "y")})
"""Inputs of operators whose operands are broadcast."""


@dataclass(frozen=True, slots=True)
class Form:
    """A call in one layout of its images."""

    layouts: Layouts
    inputs: tuple[Type, ...]
    """Types of the arguments."""
    attrs: Mapping[str, Any]
    """All attributes."""


class CallForms:
    """A call of an operator with a layout rule, as it is and as it could be."""

    def __init__(self, call: Call, result: Result, current: Known) -> None:
        self.call = call
        self.result = result
        self.current = current
        """Layouts of the arguments now."""
        self._forms: dict[str, Form | None] = {}

    @cached_property
    def layout(self) -> str:
        """The layout of its first argument now."""
        return next(text for text in self.current if text)

    @property
    def name(self) -> str:
        """Name of its operator."""
        assert isinstance(self.call.op, Op)
        return self.call.op.name

    def form(self, wanted: str) -> Form | None:
        """Return the call in a layout; None if it cannot have it."""
        if wanted not in self._forms:
            self._forms[wanted] = self._form(wanted)
        return self._forms[wanted]

    def _form(self, wanted: str) -> Form | None:
        operator = REGISTRY[self.name]
        assert operator.layouts is not None
        try:
            layouts = operator.layouts(self.result, self.current, wanted)
            if layouts is None:
                return None
            inputs = tuple(
                moved_type(kind, old, new)
                for kind, old, new in zip(
                    self.result.inputs, self.current, layouts.inputs, strict=True
                )
            )
            attrs = completed(
                self.name, operator.attributes, {**self.result.attrs, **layouts.attrs}
            )
            kind = operator.relation(CallTypes(operator, list(inputs), attrs))
        except (GraphError, NotKnown):
            return None
        return Form(layouts, inputs, attrs) if self._is_same(kind, layouts.outputs) else None

    def _is_same(self, kind: Type, outputs: Known) -> bool:
        """Tell whether a result type is that of the call, in other layouts."""
        before = self.form_now_outputs
        olds, news = fields_of(self.result.type), fields_of(kind)
        return len(olds) == len(news) == len(outputs) and all(
            moved_type(old, text, new_text) == new
            for old, new, text, new_text in zip(olds, news, before, outputs, strict=True)
        )

    @cached_property
    def form_now_outputs(self) -> Known:
        """Layouts of the results now."""
        operator = REGISTRY[self.name]
        assert operator.layouts is not None
        found = operator.layouts(self.result, self.current, self.layout)
        outputs: Known = found.outputs if found is not None else ()
        given = self.result.attrs.get("out_layout")
        return (given,) if given else outputs


def fields_of(kind: Type) -> tuple[Type, ...]:
    """Return the fields of a tuple type; another type alone."""
    return kind.fields if isinstance(kind, TupleType) else (kind,)


def moved_type(kind: Type, old: str, new: str) -> Type:
    """Return the type of a tensor, or of the tensors in a tuple, in another layout.

    Raises
    ------
    GraphError
        If a block does not divide an extent, or an extent is not known.
    """
    if isinstance(kind, TupleType):
        return TupleType(tuple(moved_type(field, old, new) for field in kind.fields))
    if old == new or not new:
        return kind
    if not old or not isinstance(kind, TensorType) or not kind.is_static:
        raise GraphError("layout", "the layout or an extent is not known", got=repr(kind))
    source, target = layout_of(old), layout_of(new)
    extents = source.extents(kind.shape)
    if extents.keys() != set(target.dimensions):
        raise GraphError("layout", "other dimensions", got=new, expected=old)
    if any(extents[letter] % target.factor(letter) for letter in extents):
        raise GraphError("layout", "blocks do not divide an extent", got=new)
    return TensorType(target.shape(extents), kind.dtype)


def forms_of(function: Function, types: Types) -> dict[Call, CallForms]:
    """Return the forms of the calls in a function whose layouts are known, in post-order."""
    known: dict[Node, Known] = {}
    found: dict[Call, CallForms] = {}
    for node in post_order(function, _below):
        match node:
            case Tuple(fields):
                known[node] = tuple(
                    known.get(field, NO_LAYOUT)[0] if isinstance(types[field], TensorType) else ""
                    for field in fields
                )
            case TupleGetItem(value, index):
                layouts = known.get(value, NO_LAYOUT)
                known[node] = (layouts[index],) if index < len(layouts) else NO_LAYOUT
            case Call(Op()):
                forms = _forms(node, types, known)
                if forms is not None:
                    found[node] = forms
                    known[node] = forms.form_now_outputs
    return found


def _below(node: Node) -> Sequence[Node]:
    """Return the children of a node; kernels stay as they are."""
    is_kernel = isinstance(node, Function) and node.is_kernel
    return () if is_kernel else children(node)


def _forms(call: Call, types: Types, known: Mapping[Node, Known]) -> CallForms | None:
    assert isinstance(call.op, Op)
    operator = REGISTRY[call.op.name]
    if operator.layouts is None:
        return None
    attrs = operator.complete(call)
    inputs = tuple(types[arg] for arg in call.args)
    current = _current(call, attrs, inputs, known)
    if not any(current):
        return None
    forms = CallForms(call, Result(attrs, inputs, types[call]), current)
    is_consistent = forms.form_now_outputs and forms.form(forms.layout) is not None
    return forms if is_consistent else None


def _current(
    call: Call, attrs: Mapping[str, Any], inputs: Sequence[Type], known: Mapping[Node, Known]
) -> Known:
    """Return the layout of each argument; () if they do not go together."""
    own = attrs.get("data_layout") or attrs.get("layout") or ""
    if own:
        weights = (attrs["kernel_layout"],) if "kernel_layout" in attrs else ()
        rest = ("",) * (len(call.args) - 1 - len(weights))
        return (own, *weights, *rest)
    if REGISTRY[call.op.name].inputs in BROADCAST:  # type: ignore[union-attr]  # an operator
        return _broadcast(call, inputs, known)
    layouts = set(known.get(call.args[0], NO_LAYOUT)) if call.args else set()
    if len(layouts) != 1 or "" in layouts:
        return ()
    return (layouts.pop(), *("",) * (len(call.args) - 1))


def _broadcast(call: Call, inputs: Sequence[Type], known: Mapping[Node, Known]) -> Known:
    """Return the layouts of operands that are broadcast: the last letters of the longest."""
    ranks = [kind.rank for kind in inputs if isinstance(kind, TensorType)]
    if len(ranks) != len(inputs):
        return ()
    given = {
        known.get(arg, NO_LAYOUT)[0]
        for arg, rank in zip(call.args, ranks, strict=True)
        if rank == max(ranks)
    } - {""}
    if len(given) != 1:
        return ()
    whole = layout_of(given.pop())
    if whole.is_blocked:
        return ()
    return tuple(whole.text[len(whole.text) - rank :] for rank in ranks)
