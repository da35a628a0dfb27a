"""Search for the layouts of a graph with the least cost.

Each call whose layouts are known is a variable; its values are layouts. A call has a cost in each
layout, and an edge has one for each pair of layouts. Calls with one or two neighbours are
eliminated exactly, as in dynamic programming over a chain; chains, residual blocks and branches
that come together again need nothing else. For what remains, the call with the most neighbours is
given its best layout.

**Source:** Y. Liu and others, "Optimizing CNN model inference on CPUs", USENIX ATC 2019, section
3.3: dynamic programming, and partitioned boolean quadratic programming where a graph is too complex
for it; B. Scholz and E. Eckstein, "Register allocation for irregular architectures", LCTES 2002.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import GraphError
from dlcompiler.graph.decisions import Decision, Effect
from dlcompiler.graph.inference import Types, infer_types, types_of
from dlcompiler.graph.ir import (
    Call,
    Function,
    Module,
    Node,
    TensorType,
    Tuple,
    TupleGetItem,
    children,
    post_order,
)
from dlcompiler.graph.operators.layouts import layout_of
from dlcompiler.graph.passes.layouts.convert import converted, decided
from dlcompiler.graph.passes.layouts.costs import LayoutCosts, predicted_costs
from dlcompiler.graph.passes.layouts.forms import CallForms, fields_of, forms_of

OPERATORS = ("nn.conv2d",)
LAYOUTS = ("NCHW", "NHWC", "NCHW8c", "NCHW16c")
Costs: TypeAlias = npt.NDArray[np.float64]


def search_layouts(
    module: Module, layouts: Sequence[str] = LAYOUTS, costs: LayoutCosts | None = None
) -> Module:
    """Give convolutions, and the calls around them, the layouts with the least cost in all.

    *Before*::

        nn.conv2d(%x, %w, strides=[2, 2])

    *After*::

        %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
        %1 = layout_transform(%w, src_layout="OIHW", dst_layout="HWIO");
        %2 = nn.conv2d(%0, %1, strides=[2, 2], data_layout="NHWC", kernel_layout="HWIO");
        layout_transform(%2, src_layout="NHWC", dst_layout="NCHW")

    for a small image with many channels, whose rows are shorter than a vector.

    Parameters
    ----------
    module : Module
        The module.
    layouts : sequence of str
        Layouts that a call may have; the one that it has is always possible.
    costs : LayoutCosts, optional
        By default they are predicted from shapes: `predicted_costs`.

    Returns
    -------
    Module
        Its log has a decision for each convolution, with the cost of each layout.

    Notes
    -----
    A value that several calls read in the same new layout is changed once; the search counts the
    change for each of them.
    """
    costs = costs or predicted_costs()
    for text in layouts:
        layout_of(text)
    typed = infer_types(module)
    types = types_of(typed)
    chosen: dict[Call, str] = {}
    networks: dict[Call, _Network] = {}
    for function in typed.functions.values():
        if not function.is_kernel:
            network = _network(function, types, layouts, costs)
            chosen |= network.solved()
            networks |= dict.fromkeys(network.forms, network)

    def decision(forms: CallForms, layout: str) -> Decision | None:
        return networks[forms.call].decision(forms, layout, costs)

    after = converted(typed, lambda forms, _: chosen[forms.call], decision)
    return module if after is typed else after


def _network(
    function: Function, types: Types, layouts: Sequence[str], costs: LayoutCosts
) -> _Network:
    """Return the variables of a function with their costs."""
    network = _Network(forms_of(function, types))
    for call, forms in network.forms.items():
        network.states[call] = [
            text for text in dict.fromkeys((forms.layout, *layouts)) if forms.form(text) is not None
        ]
        is_searched = forms.name in OPERATORS
        own = [costs.call(forms, text) if is_searched else 0.0 for text in network.states[call]]
        if np.isnan(own).any() or not np.isfinite(own[0]):
            raise GraphError("search layouts", f"the cost of {call.name} is not a number", got=own)
        network.own[call] = np.asarray(own, np.float64)
    readers = network.readers(function, types)
    for call in network.forms:
        network.add_operands(call, types, costs)
    for read in readers:
        if read.maker is not None:
            network.add_plain_reader(read.maker, read, costs)
    return network


@dataclass(frozen=True, slots=True)
class _Read:
    """A tensor that something reads."""

    value: Node
    """The tensor, or the tuple that it is in."""
    kind: TensorType
    maker: Call | None
    """The call of the network that makes it; None for another value."""
    index: int
    """Which result of its maker it is."""

    def cost(self, costs: LayoutCosts, way: Sequence[str]) -> float:
        """Return the cost of bringing it from one layout to the next, in pairs.

        A reader may take its dimensions for others than its maker: then it is brought back first.
        """
        pairs = zip(way[::2], way[1::2], strict=True)
        return sum(costs.transform(self.value, self.kind, old, new) for old, new in pairs)


@dataclass
class _Network:
    """Costs of calls in layouts, and of pairs of calls."""

    forms: dict[Call, CallForms]
    states: dict[Call, list[str]] = field(default_factory=dict)
    own: dict[Call, Costs] = field(default_factory=dict)
    edges: dict[Call, dict[Call, Costs]] = field(default_factory=dict)
    is_exact: bool = True
    """Whether all calls were eliminated exactly: then the layouts found have the least cost."""

    def read_from(self, value: Node, types: Types) -> Iterator[_Read]:
        """Yield the tensors in a value, with the calls of the network that make them."""
        for leaf in _leaves(value):
            made, first = leaf, 0
            if isinstance(leaf, TupleGetItem):
                made, first = leaf.value, leaf.index
            maker = made if isinstance(made, Call) and made in self.forms else None
            kinds = fields_of(types[leaf]) if leaf in types else ()
            for index, kind in enumerate(kinds, first):
                if isinstance(kind, TensorType):
                    yield _Read(leaf, kind, maker, index)

    def readers(self, function: Function, types: Types) -> list[_Read]:
        """Return the tensors of the network that others read, who need them as they were."""
        found: dict[tuple[Node, int], _Read] = {}
        for node in post_order(function):
            is_transparent = isinstance(node, TupleGetItem | Tuple) or node in self.forms
            read = [] if is_transparent else list(children(node))
            for child in [*read, node] if node is function.body else read:
                for each in self.read_from(child, types):
                    found[each.value, each.index] = each
        return list(found.values())

    def add_operands(self, call: Call, types: Types, costs: LayoutCosts) -> None:
        """Add the costs of bringing the operands of a call into its layout."""
        forms = self.forms[call]
        found = [forms.form(text) for text in self.states[call]]
        for i, arg in enumerate(call.args):
            news = [form.layouts.inputs[i] if form else "" for form in found]
            old = forms.current[i]
            for read in self.read_from(arg, types) if old else ():
                if read.maker is None:
                    self.own[call] += [costs.transform(read.value, read.kind, old, new)
                                       for new in news]  # fmt: skip
                    continue
                was = self.forms[read.maker].form_now_outputs[read.index]
                rows = [
                    [read.cost(costs, (before, new) if was == old else (before, was, old, new))
                     for new in news]
                    for before in self.outputs(read.maker, read.index)
                ]  # fmt: skip
                self.add_edge(read.maker, call, np.asarray(rows, np.float64))

    def outputs(self, call: Call, index: int) -> list[str]:
        """Return the layout of a result for each state of its call."""
        found = [self.forms[call].form(text) for text in self.states[call]]
        return [form.layouts.outputs[index] if form else "" for form in found]

    def add_plain_reader(self, call: Call, read: _Read, costs: LayoutCosts) -> None:
        """Add the costs of bringing a result back into the layout that it had."""
        old = self.forms[call].form_now_outputs[read.index]
        news = self.outputs(call, read.index)
        self.own[call] += [costs.transform(read.value, read.kind, new, old) for new in news]

    def add_edge(self, a: Call, b: Call, table: Costs) -> None:
        """Add costs of pairs of layouts."""
        if a is b:
            self.own[a] += np.diag(table)
            return
        for x, y, costs in ((a, b, table), (b, a, table.T)):
            beside = self.edges.setdefault(x, {})
            beside[y] = beside[y] + costs if y in beside else costs

    def solved(self) -> dict[Call, str]:
        """Return the layout of each call: eliminate one after the other, then go back."""
        own = {call: costs.copy() for call, costs in self.own.items()}
        edges = {call: dict(self.edges.get(call, {})) for call in self.forms}
        steps: list[tuple[Call, dict[Call, Costs], Costs]] = []
        open_calls = dict.fromkeys(self.forms)
        while open_calls:
            call = min(open_calls, key=lambda c: len(edges[c]))
            if len(edges[call]) > 2:
                call = max(open_calls, key=lambda c: len(edges[c]))
                self.is_exact = False
            del open_calls[call]
            beside = edges.pop(call)
            steps.append((call, beside, own[call]))
            for other in beside:
                del edges[other][call]
            _eliminate(own[call], beside, own, edges)
        places: dict[Call, int] = {}
        for call, beside, costs in reversed(steps):
            total = costs.copy()
            for other, table in beside.items():
                total = total + table[:, places[other]]
            places[call] = int(np.argmin(total))
        return {call: self.states[call][place] for call, place in places.items()}

    def decision(self, forms: CallForms, layout: str, costs: LayoutCosts) -> Decision | None:
        """Return the decision about a convolution, with what each layout would cost."""
        if forms.name not in OPERATORS:
            return None
        times = {text: costs.call(forms, text) for text in self.states[forms.call]}
        words = [f"{text} {time * 1e6:.4g} µs" for text, time in times.items() if text != layout]
        proof = "least cost" if self.is_exact else "low cost"
        reason = f"{proof} with the changes of layout around it; alone {times[layout] * 1e6:.4g} µs"
        effect = Effect(seconds=times[forms.layout] - times[layout], provenance=costs.provenance)
        return decided(forms, layout, proof, reason, alternatives=words, effect=effect)


def _eliminate(
    costs: Costs, beside: dict[Call, Costs], own: dict[Call, Costs],
    edges: dict[Call, dict[Call, Costs]],
) -> None:  # fmt: skip
    """Give the least cost of a call, for all layouts of its neighbours, to these."""
    match list(beside.items()):
        case []:
            return
        case [(a, table)]:
            own[a] = own[a] + (costs[:, None] + table).min(axis=0)
        case [(a, left), (b, right)]:
            both = (costs[:, None, None] + left[:, :, None] + right[:, None, :]).min(axis=0)
            for x, y, pair in ((a, b, both), (b, a, both.T)):
                edges[x][y] = edges[x][y] + pair if y in edges[x] else pair
        case many:
            best = int(np.argmin(costs + sum(table.min(axis=1) for _, table in many)))
            for other, table in many:
                own[other] = own[other] + table[best]
            costs[np.arange(len(costs)) != best] = np.inf


def _leaves(value: Node) -> list[Node]:
    """Return the values in a tuple that is made where it is read; another value alone."""
    if isinstance(value, Tuple):
        return [leaf for field in value.fields for leaf in _leaves(field)]
    return [value]
