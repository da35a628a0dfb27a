"""Make kernels with the same input and the same loops one kernel with several results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from dlcompiler.graph.decisions import Decision, Effect
from dlcompiler.graph.ir import (
    Call,
    Constant,
    Expr,
    Function,
    Node,
    TupleGetItem,
    calls,
    children,
    post_order,
    with_children,
)
from dlcompiler.graph.passes.fusion.kernels import (
    KernelGraph,
    body_of,
    kernel_graph,
    outside,
    side_by_side,
    size_of,
)
from dlcompiler.graph.passes.fusion.limits import Limits
from dlcompiler.graph.passes.fusion.loops import Loops, Steps, loops_of, most_live, steps_of
from dlcompiler.graph.passes.fusion.reasons import decision_by_name


def fuse_siblings(function: Function, limits: Limits) -> tuple[Function, list[Decision]]:
    """Join independent kernels that read the same value in the same loops.

    Parameters
    ----------
    function : Function
        Its calls are kernels.
    limits : Limits
        What forbids it.

    Returns
    -------
    function : Function
        The function, the same one if nothing changes.
    log : list of Decision
        About pairs of kernels, by the names of the calls that give their results. A kernel that
        several groups could not take has one refusal for each value that it reads: by the first.

    Notes
    -----
    One loop nest computes each element of each result, and reads the input once. The results have
    one shape; or all are reductions of the same dimensions, with an accumulator each. No operator
    may be an anchor.
    """
    graph = kernel_graph(function)
    if graph is None:
        return function, []
    search = _Search(graph, limits)
    search.run()
    joined = _joined(function, search.group_of) if search.group_of else function
    return joined, [*search.log.values()]


@dataclass(eq=False)
class _Readers:
    """Kernels that read one value in the same loops."""

    value: Expr
    loops: Loops
    kernels: list[Call]
    """Those that are in no group yet."""
    refused: set[Call]
    """Those that were refused by a group."""


@dataclass(frozen=True)
class _Facts:
    """What decides whether a kernel joins a group."""

    steps: Steps
    size: int
    """Number of its calls; [1]."""
    live: int
    """Values of one element that it needs at once; [1]."""


class _Search:
    """Looks for groups until no value has readers that can be one.

    Groups are found in the order of their first kernels. One is not looked for again where nothing
    has changed.
    """

    def __init__(self, graph: KernelGraph, limits: Limits) -> None:
        self.graph = graph
        self.limits = limits
        self.log: dict[tuple[str, ...], Decision] = {}
        self.above = dict(graph.above)
        """As in the graph, where the groups that were found are one kernel each."""
        self.facts: dict[Call, _Facts] = {}
        self.readers: dict[Call, list[_Readers]] = defaultdict(list)
        """For each kernel what it is a reader in."""
        self.order: dict[Node, int] = dict(graph.number)
        """The place of each kernel, where a group is one kernel; [1]."""
        self.group_of: dict[Node, list[Call]] = {}
        self.waiting: list[tuple[tuple[int, int], int]] = []
        """A heap of readers to look at: their place, and their number in `all`."""
        found: dict[tuple[Expr, Loops], _Readers] = {}
        for call in graph.kernels:
            loops = loops_of(call)
            for arg in dict.fromkeys(call.args) if loops else ():
                if loops and not isinstance(arg, Constant):
                    key = arg, loops
                    readers = found.setdefault(key, _Readers(arg, loops, [], set()))
                    readers.kernels.append(call)
                    self.readers[call].append(readers)
        self.all = list(found.values())
        self.number = {readers: n for n, readers in enumerate(self.all)}

    def run(self) -> None:
        """Find the groups."""
        self._wait(self.all)
        while self.waiting:
            place, n = heappop(self.waiting)
            readers = self.all[n]
            if len(readers.kernels) < 2 or place != self._place(readers):
                continue  # it waits at another place, too, if its first kernel was taken
            group = self._group(readers)
            if len(group) > 1:
                self._take(group)
        self._note_other_loops()

    def _wait(self, changed: Iterable[_Readers]) -> None:
        """Look at readers again."""
        for readers in changed:
            if len(readers.kernels) > 1:
                heappush(self.waiting, (self._place(readers), self.number[readers]))

    def _place(self, readers: _Readers) -> tuple[int, int]:
        """Return the place of the first of the readers, and of the value among its arguments."""
        first = readers.kernels[0]
        return self.order[first], first.args.index(readers.value)

    def _group(self, readers: _Readers) -> list[Call]:
        """Return the first of the readers, with those that can be one kernel with it."""
        first, *others = readers.kernels
        group = _Group(first, self)
        least = min((self._facts(call).live for call in others), default=0)
        for call in others:
            if call in readers.refused and group.is_full(least):
                continue
            key = group.verdict(call)
            if key is None or (key != "siblings" and call in readers.refused):
                continue
            self._note(first, call, key, readers)
            if key == "siblings":
                group.add(call)
            else:
                readers.refused.add(call)
        return group.kernels

    def _facts(self, call: Call) -> _Facts:
        if call not in self.facts:
            steps = steps_of(call)
            self.facts[call] = _Facts(steps, len(calls(body_of(call).body)), most_live([steps]))
        return self.facts[call]

    def depends(self, call: Call, group: _Group) -> bool:
        """Tell whether a kernel depends on one of a group, or the other way round."""
        own = self.graph.number[call]
        return bool(self.above[call] & group.bits or group.above >> own & 1)

    def _take(self, group: list[Call]) -> None:
        """Make kernels one: what depends on one of them depends on all."""
        whole = _Group(group[0], self)
        for call in group[1:]:
            whole.add(call)
        self.group_of |= dict.fromkeys(group, group)
        changed = dict.fromkeys(r for call in group for r in self.readers[call])
        for readers in changed:
            readers.kernels = [call for call in readers.kernels if call not in self.group_of]
        self._spread(whole)
        if whole.above >> self.graph.number[group[0]]:
            self._sort()
        else:
            self._wait(changed)

    def _spread(self, group: _Group) -> None:
        """Let all that depends on one kernel of a group depend on what the group depends on."""
        users = (user for call in group.kernels for user in self.graph.users[call])
        # What is further above depends on them by way of these users.
        if all(self.above.get(u, 0) & group.bits in (0, group.bits) for u in users):
            return
        below = group.bits | group.above
        for node, above in self.above.items():
            if above & group.bits:
                self.above[node] = above | below

    def _sort(self) -> None:
        """Sort all kernels anew: what a group reads is computed before its first kernel."""
        body = self.graph.function.body
        nodes = post_order(body, lambda node: _below(node, self.group_of))
        self.order = {call: n for n, call in enumerate(nodes) if isinstance(call, Call)}
        for readers in self.all:
            readers.kernels.sort(key=self.order.__getitem__)
        self._wait(self.all)

    def _note(self, first: Call, call: Call, key: str, readers: _Readers) -> None:
        effect = Effect(size_of(call, call.args.index(readers.value)), 1)
        names = (_name(first), _name(call))
        words = {**self.limits.words, "value": _text(readers.value)}
        self.log[names] = decision_by_name(*names, key, effect, words)

    def _note_other_loops(self) -> None:
        """Say why reductions are no siblings of what reads the same value otherwise."""
        beside: dict[Expr, list[_Readers]] = defaultdict(list)
        for readers in self.all:
            if readers.kernels:
                beside[readers.value].append(readers)
        for first, *others in beside.values():
            for other in others:
                a, b = first.kernels[0], other.kernels[0]
                is_reduction = first.loops.reduced or other.loops.reduced
                if is_reduction and not self.depends(b, _Group(a, self)):
                    self._note(a, b, "other loops", other)


class _Group:
    """Kernels that become one."""

    def __init__(self, first: Call, search: _Search) -> None:
        self.search = search
        self.kernels: list[Call] = []
        self.bits = 0
        """Their numbers: bit n is set for kernel n."""
        self.above = 0
        """The kernels that they depend on."""
        self.size = 0
        self.add(first)

    def add(self, call: Call) -> None:
        """Add a kernel."""
        self.kernels.append(call)
        self.bits |= 1 << self.search.graph.number[call]
        self.above |= self.search.above[call]
        self.size += self.search._facts(call).size

    def is_full(self, live: int) -> bool:
        """Tell whether the results leave no room for a kernel that needs so many values."""
        return len(self.kernels) + live > self.search.limits.options.max_live

    def verdict(self, call: Call) -> str | None:
        """Return the key of the rule that decides whether a kernel joins; None: no siblings."""
        search, limits = self.search, self.search.limits
        if search.depends(call, self):
            return None
        if any(limits.is_apart(each, call) for each in self.kernels):
            return "kept apart"
        facts = search._facts(call)
        if self.size + facts.size > limits.max_depth:
            return "too many"
        if self.is_full(facts.live):
            return "registers"
        steps = [search._facts(each).steps for each in (*self.kernels, call)]
        return "registers" if most_live(steps) > limits.options.max_live else "siblings"


def _below(node: Node, group_of: Mapping[Node, Sequence[Call]]) -> Sequence[Node]:
    """Return what comes before a node: before a kernel of a group, all that the group reads."""
    if node in group_of:
        return [arg for call in group_of[node] for arg in call.args]
    return outside(node)


def _joined(function: Function, group_of: Mapping[Node, Sequence[Call]]) -> Function:
    """Return a function in which each group of kernels is one."""
    made: dict[Node, Node] = {}
    for node in post_order(function.body, lambda node: _below(node, group_of)):
        if node in made:
            continue
        group = group_of.get(node, ())
        for each in group or (node,):
            made[each] = with_children(each, [made.get(c, c) for c in children(each)])
        if group:
            whole = side_by_side([made[call] for call in group])  # type: ignore[misc]  # calls
            made |= {call: TupleGetItem(whole, n) for n, call in enumerate(group)}
    return replace(function, body=made[function.body])  # type: ignore[arg-type]  # no operator


def _name(call: Call) -> str:
    body = body_of(call).body
    return body.name if isinstance(body, Call) else call.name


def _text(node: Node) -> str:
    return getattr(node, "name", "") or type(node).__name__.lower()
