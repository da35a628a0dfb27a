"""Bring calls into other layouts, with changes of layout between calls that differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from dlcompiler.errors import GraphError
from dlcompiler.graph.decisions import Decision, Effect, Verdict
from dlcompiler.graph.inference import Types, infer_types, types_of
from dlcompiler.graph.ir import (
    Call,
    Constant,
    Expr,
    Function,
    Module,
    Node,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    children,
    named,
    nbytes,
    post_order,
    tensor_types,
    with_children,
)
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.graph.operators.functions import call as make_call
from dlcompiler.graph.operators.layouts import layout_of
from dlcompiler.graph.passes.layouts.forms import CallForms, Known, forms_of, moved_type
from dlcompiler.graph.passes.tools import operator_of, with_log

NAME = "convert_layout"
NO_EFFECT = Effect()
DEFAULT = "default"
"""In the place of a layout: as it is, or for weights that which goes with the images."""


def convert_layout(module: Module, desired_layouts: Mapping[str, Sequence[str]]) -> Module:
    """Bring the calls of some operators into layouts; the calls behind them follow.

    *Before*::

        %0 = nn.conv2d(%x, %w);
        nn.relu(%0)

    *After*::

        %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
        %1 = layout_transform(%w, src_layout="OIHW", dst_layout="HWIO");
        %2 = nn.conv2d(%0, %1, data_layout="NHWC", kernel_layout="HWIO");
        %3 = nn.relu(%2);
        layout_transform(%3, src_layout="NHWC", dst_layout="NCHW")

    Parameters
    ----------
    module : Module
        The module.
    desired_layouts : mapping
        Operator -> the layout of its images, then that of its weights; ``"default"`` for the
        layout that it has, or that goes with the images: ``{"nn.conv2d": ["NHWC", "default"]}``.

    Returns
    -------
    Module
        Parameters and results keep their layouts.

    Raises
    ------
    GraphError
        If a layout or an operator is none, or the layout of the weights does not go with that of
        the images.

    Notes
    -----
    A call without a wish takes the layout of its first operand that was changed, if it can.
    """
    _check(desired_layouts)

    def choice(forms: CallForms, laid: Sequence[str]) -> str:
        desired = desired_layouts.get(forms.name)
        if desired is not None:
            return forms.layout if desired[0] == DEFAULT else desired[0]
        if "kernel_layout" in forms.result.attrs:
            return forms.layout
        return next((new for new in laid if new), forms.layout)

    def decision(forms: CallForms, layout: str) -> Decision | None:
        asked = [text for text in desired_layouts.get(forms.name, ()) if text != DEFAULT]
        if not asked:
            return None
        is_done = layout == choice(forms, ())
        rule = "asked for" if is_done else "not possible"
        words = f"{' with '.join(asked)} was asked for"
        words += "" if is_done else f", it cannot have this: {layout}"
        return decided(forms, layout, rule, words, is_done=is_done)

    kernels = {name: wish[1] for name, wish in desired_layouts.items() if len(wish) > 1}
    return converted(module, choice, decision, kernels)


def _check(desired_layouts: Mapping[str, Sequence[str]]) -> None:
    for name, layouts in desired_layouts.items():
        if name not in REGISTRY or REGISTRY[name].layouts is None:
            raise GraphError(NAME, f"no operator with layouts has the name {name}")
        if isinstance(layouts, str) or not 1 <= len(layouts) <= 2:
            raise GraphError(
                NAME, f"not layouts of {name}", got=repr(layouts), expected='["NHWC", "default"]'
            )
        for text in layouts:
            if text != DEFAULT:
                layout_of(text)
        has_weights = any(a.name == "kernel_layout" for a in REGISTRY[name].attributes)
        if layouts[1:] not in ((), [], [DEFAULT], (DEFAULT,)) and not has_weights:
            raise GraphError(NAME, f"{name} has no weights", got=repr(list(layouts)))


Choice = Callable[[CallForms, Sequence[str]], str]
"""Returns the layout of a call from those that its operands were given; "" for no change."""


def decided(
    forms: CallForms, layout: str, rule: str, reason: str, *, is_done: bool = True,
    alternatives: Sequence[str] = (), effect: Effect = NO_EFFECT,
) -> Decision:  # fmt: skip
    """Return the decision about the layout of a call."""
    subject = (forms.call.name or forms.name,)
    verdict: Verdict = "laid out" if is_done else "not laid out"
    remedy = f'convert_layout(module, {{"{forms.name}": ["{forms.layout}"]}})'
    remedy = "" if layout == forms.layout else remedy
    reason = f"{layout}: {reason}" if is_done else reason
    return Decision(NAME, subject, verdict, rule, reason, remedy, tuple(alternatives), effect)


def converted(
    module: Module, choice: Choice, decision: Callable[[CallForms, str], Decision | None],
    kernels: Mapping[str, str] | None = None,
) -> Module:  # fmt: skip
    """Return a module whose calls have chosen layouts, with its decisions."""
    typed = infer_types(module)
    types = types_of(typed)
    log: list[Decision] = []
    functions = {}
    for name, function in typed.functions.items():
        if function.is_kernel:
            functions[name] = function
            continue
        converter = _Converter(types, forms_of(function, types), choice, kernels or {})
        functions[name] = converter.rewritten(function)
        for forms in converter.forms.values():
            found = decision(forms, converter.layouts.get(forms.call, forms.layout))
            log += [] if found is None else [found]
        log += converter.log
    if all(functions[name] is typed.functions[name] for name in functions):
        known = {_key(d) for d in module.log}
        return with_log(module, [d for d in log if _key(d) not in known])
    return named(replace(typed, functions=functions, log=(*typed.log, *log)))


def _key(decision: Decision) -> tuple[object, ...]:
    """Return what makes a decision the same as one of an earlier run."""
    return decision.subject, decision.verdict, decision.rule, decision.reason


def _field(value: Expr, i: int) -> Expr:
    return value.fields[i] if isinstance(value, Tuple) else TupleGetItem(value, i)


@dataclass(frozen=True, slots=True)
class _Laid:
    """A value in the new graph, with the layouts of its tensors before and after."""

    value: Expr
    old: Known
    new: Known


class _Converter:
    """Rewrites the calls of a function one after the other."""

    def __init__(
        self, types: Types, forms: Mapping[Call, CallForms], choice: Choice,
        kernels: Mapping[str, str],
    ) -> None:  # fmt: skip
        self.types = types
        self.forms = forms
        self.choice = choice
        self.kernels = kernels
        self.laid: dict[Node, _Laid] = {}
        """Values that have another layout now."""
        self.made: dict[Node, Node] = {}
        """Values as they were, in the new graph."""
        self.moved: dict[tuple[Node, str, str], Expr] = {}
        self.layouts: dict[Call, str] = {}
        self.log: list[Decision] = []

    def rewritten(self, function: Function) -> Function:
        """Return the function with its calls in their layouts."""
        for node in post_order(function, self._below):
            if isinstance(node, Call) and node in self.forms and self._lay_out(node):
                continue
            if isinstance(node, Tuple) and any(field in self.laid for field in node.fields):
                self._lay_out_tuple(node)
            elif isinstance(node, TupleGetItem) and node.value in self.laid:
                self._lay_out_field(node)
            else:
                below = [self.plain(child) for child in self._below(node)]
                self.made[node] = with_children(node, below) if below else node
        found = self.made[function]
        assert isinstance(found, Function)
        return found

    @staticmethod
    def _below(node: Node) -> Sequence[Node]:
        return () if isinstance(node, Function) and node.is_kernel else children(node)

    def plain(self, node: Node) -> Node:
        """Return a value in the layout that it had."""
        if node not in self.made:
            laid = self.laid[node]
            if isinstance(node, Tuple):
                self.made[node] = with_children(node, [self.plain(f) for f in node.fields])
            elif isinstance(self.types[node], TupleType):
                self.made[node] = self._fields_transformed(laid.value, node, laid.new, laid.old)
            else:
                self.made[node] = self._transformed(laid.value, node, laid.new[0], laid.old[0])
        return self.made[node]

    def _fields_transformed(
        self, value: Expr, origin: Node, olds: Sequence[str], news: Sequence[str]
    ) -> Tuple:
        """Return a tuple that a call gives, with its fields in other layouts."""
        pairs = enumerate(zip(olds, news, strict=True))
        fields = (self._transformed(_field(value, i), origin, *pair, place=i) for i, pair in pairs)
        return Tuple(tuple(fields))

    def _lay_out_tuple(self, node: Tuple) -> None:
        parts = [self.laid.get(field) for field in node.fields]
        if any(isinstance(self.types[field], TupleType) for field in node.fields):
            self.made[node] = with_children(node, [self.plain(field) for field in node.fields])
            return
        values = [
            self._new_plain(field) if part is None else part.value
            for field, part in zip(node.fields, parts, strict=True)
        ]
        old = tuple("" if part is None else part.old[0] for part in parts)
        new = tuple("" if part is None else part.new[0] for part in parts)
        self.laid[node] = _Laid(replace(node, fields=tuple(values)), old, new)

    def _new_plain(self, node: Expr) -> Expr:
        return self.plain(node)  # type: ignore[return-value]  # an expression stays one

    def _lay_out_field(self, node: TupleGetItem) -> None:
        laid = self.laid[node.value]
        old, new = laid.old[node.index], laid.new[node.index]
        value: Expr
        if isinstance(laid.value, Tuple):
            value = laid.value.fields[node.index]
        else:
            value = replace(node, value=laid.value)
        if old == new:
            self.made[node] = value
        else:
            self.laid[node] = _Laid(value, (old,), (new,))

    def _lay_out(self, call: Call) -> bool:
        """Bring a call into its chosen layout; return whether it is another one than before."""
        forms = self.forms[call]
        given = [self._given(arg) for arg in call.args]
        wanted = self.choice(forms, given)
        form = forms.form(wanted)
        own = forms.result.attrs.get("kernel_layout", DEFAULT)
        asked = self.kernels.get(forms.name, DEFAULT)
        if form is None or (wanted == forms.layout and asked in (DEFAULT, own)):
            return False
        inputs, attrs = list(form.layouts.inputs), dict(form.attrs)
        if asked != DEFAULT:
            moved_type(self.types[call.args[1]], forms.current[1], asked)  # refuses other letters
            attrs["kernel_layout"] = inputs[1] = asked
        args = [
            self._in_layout(arg, old, new)
            for arg, old, new in zip(call.args, forms.current, inputs, strict=True)
        ]
        made = make_call(REGISTRY[forms.name], args, attrs, call.name, call.span)
        self.layouts[call] = wanted
        self.laid[call] = _Laid(made, forms.form_now_outputs, form.layouts.outputs)
        return True

    def _given(self, arg: Node) -> str:
        """Return the layout that an operand was given; "" if it has the one that it had."""
        laid = self.laid.get(arg)
        return "" if laid is None else next((text for text in laid.new if text), "")

    def _in_layout(self, arg: Expr, old: str, new: str) -> Expr:
        """Return an operand in a layout; a tuple with all its fields in it.

        A reader may take the dimensions of a value for others than the call that made it: then the
        value must be in its old layout in between.
        """
        if isinstance(arg, Tuple):
            fields = tuple(self._in_layout(field, old, new) for field in arg.fields)
            return Tuple(fields, arg.span)
        laid, kind = self.laid.get(arg), self.types[arg]
        if laid is not None and set(laid.old) == {old}:
            if set(laid.new) == {new}:
                return laid.value
            if new and not isinstance(kind, TupleType):
                # From one new layout to the other, without the old one between them.
                return self._transformed(laid.value, arg, laid.new[0], new)
        plain = self._new_plain(arg)
        if not new or old == new:
            return plain
        if isinstance(kind, TupleType):
            count = len(kind.fields)
            return self._fields_transformed(plain, arg, (old,) * count, (new,) * count)
        return self._transformed(plain, arg, old, new)

    def _transformed(
        self, value: Expr, origin: Node, old: str, new: str, *, place: int = 0
    ) -> Expr:
        """Return a value in another layout; the same call for the same value.

        It is a tensor of the old graph: `origin`, or the field of it at a place.
        """
        if old == new:
            return value
        key = (value, old, new)
        if key not in self.moved:
            name = origin.name if isinstance(origin, Call) else ""
            self.moved[key] = make_call(
                REGISTRY["layout_transform"], [value],
                {"src_layout": old, "dst_layout": new}, f"{name}.{new}" if name else "",
                getattr(origin, "span", None),
            )  # fmt: skip
            self._note(origin, tensor_types(self.types[origin])[place], old, new)
        return self.moved[key]

    def _note(self, origin: Node, kind: TensorType, old: str, new: str) -> None:
        """Log a change of layout, with the bytes that it reads and writes."""
        if isinstance(origin, Constant):
            return  # it is folded
        named = getattr(origin, "name", "") or operator_of(origin) or type(origin).__name__.lower()
        size = nbytes(kind) if kind.is_static else 0
        self.log.append(Decision(
            NAME, (named,), "laid out", "transform",
            f"{named} is in {old}, a reader of it in {new}", "give both the same layout",
            effect=Effect(bytes=-2 * size, kernels=-1),
        ))  # fmt: skip
