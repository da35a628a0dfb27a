"""Mistakes in the passes on graphs."""

from __future__ import annotations

import numpy as np

from dlcompiler.graph.operators import Pattern
from tests.mutants.mutant import Family
from tests.mutants.patching import Patch

GRAPHS = Family()
FUSION, LAYOUTS, DEVICES = (f"graph/passes/{name}" for name in ("fusion", "layouts", "devices"))
MEMORY = "graph/memory"


@GRAPHS(f"{FUSION}/forced.py", tests=FUSION)
def forced_only_the_pair(patch: Patch) -> None:
    """A forced group leaves out what lies between the producer and the end."""
    patch.function(
        "graph.passes.fusion.forced:_between",
        lambda original, a, b, partition: [original(a, b, partition)[i] for i in (0, -1)],
    )


@GRAPHS(f"{FUSION}/forced.py", tests=FUSION)
def forced_reduction_goes_on(patch: Patch) -> None:
    """A forced group keeps the pattern of its end, so that the rules fuse it further."""

    def wrong(original, partition, a, b):
        before = partition.of(partition.at[b]).pattern
        original(partition, a, b)
        partition.of(partition.at[b]).pattern = before

    patch.function("graph.passes.fusion.forced:force", wrong)


@GRAPHS(f"{FUSION}/forced.py", tests=FUSION)
def forced_two_anchors(patch: Patch) -> None:
    """Two loop nests may be forced into one kernel."""

    def wrong(original, flows, partition):
        key = original(flows, partition)
        return None if key == "two anchors" else key

    patch.function("graph.passes.fusion.forced:_why_not", wrong)


@GRAPHS(f"{FUSION}/groups.py", tests=FUSION)
def kept_apart_is_forgotten(patch: Patch) -> None:
    """Pairs that must stay apart are merged."""
    patch.method("graph.passes.fusion.groups:Partition", "can_merge", lambda original, *_: True)


@GRAPHS(f"{FUSION}/groups.py", tests=FUSION)
def limit_one_more(patch: Patch) -> None:
    """A group may have one node more than the limit."""

    def wrong(original, self, *args):
        self.max_depth += 1
        try:
            return original(self, *args)
        finally:
            self.max_depth -= 1

    patch.method("graph.passes.fusion.groups:Partition", "is_too_large", wrong)


@GRAPHS(f"{FUSION}/wished.py", tests=FUSION)
def parts_are_forgotten(patch: Patch) -> None:
    """A wish is about the call of its name only, not about what a pass made beside it."""

    def wrong(original, name, wish, known):
        return (call for call in original(name, wish, known) if call.name == name)

    patch.function("graph.passes.fusion.wished:_parts", wrong)


@GRAPHS(f"{FUSION}/rows.py", tests=FUSION)
def rows_of_others(patch: Patch) -> None:
    """A value with one number for each row may be broadcast along any dimension."""
    patch.method("graph.passes.fusion.rows:Rows", "_is_aligned", lambda original, *_: True)


@GRAPHS(f"{FUSION}/rows.py", tests=FUSION)
def rows_need_no_cache(patch: Patch) -> None:
    """Rows are taken to need no memory after a reduction."""
    patch.method("graph.passes.fusion.rows:Rows", "kept_bytes", lambda original, *_: 0)


@GRAPHS(f"{FUSION}/recompute.py", tests=FUSION)
def recompute_into_anything(patch: Patch) -> None:
    """A producer is computed again before anchors, too."""
    patch.function("graph.passes.fusion.recompute:_takes", lambda original, *_: True)


@GRAPHS(f"{FUSION}/recompute.py", tests=FUSION)
def recompute_whatever_it_costs(patch: Patch) -> None:
    """Recomputing is taken to cost nothing."""
    patch.function("graph.passes.fusion.kernels:work_of", lambda original, call: 0)


@GRAPHS(f"{FUSION}/recompute.py", tests=FUSION)
def copies_never_round(patch: Patch) -> None:
    """Copies are made also where they are compared."""
    patch.function("graph.passes.fusion.kernels:is_exact", lambda original, call: True)


@GRAPHS(f"{FUSION}/kernels.py", tests=FUSION)
def kernels_never_meet(patch: Patch) -> None:
    """The results of kernels are taken to come together nowhere."""
    patch.method("graph.passes.fusion.kernels:KernelGraph", "meet", lambda *_: False)


@GRAPHS(f"{FUSION}/siblings.py", tests=f"{FUSION}/test_siblings.py")
def kernels_never_depend(patch: Patch) -> None:
    """Kernels are taken to be independent."""
    patch.method("graph.passes.fusion.siblings:_Search", "depends", lambda *_: False)


@GRAPHS(f"{FUSION}/siblings.py", tests=f"{FUSION}/test_siblings.py")
def groups_have_no_dependences(patch: Patch) -> None:
    """What depends on one kernel of a group is not taken to depend on the others."""
    patch.method("graph.passes.fusion.siblings:_Search", "_spread", lambda *_: None)


@GRAPHS(f"{FUSION}/loops.py", tests=FUSION)
def accumulators_take_no_register(patch: Patch) -> None:
    """Accumulators of reductions are not counted before they are complete."""
    patch.function(
        "graph.passes.fusion.loops:_peak",
        lambda original, order, results, alive: original(order, results, set()),
    )


@GRAPHS(f"{FUSION}/kernels.py", tests=FUSION)
def results_swapped(patch: Patch) -> None:
    """The results of siblings are in the wrong order."""
    patch.function(
        "graph.passes.fusion.kernels:side_by_side",
        lambda original, kernels: original([*reversed(kernels)]),
    )


@GRAPHS(f"{FUSION}/kernels.py", tests=FUSION)
def anchors_are_one_loop(patch: Patch) -> None:
    """Kernels with a reduction or an anchor are taken for one loop."""

    def wrong(original, call):
        found = original(call)
        return {pattern for pattern in found if pattern <= Pattern.INJECTIVE} or {
            Pattern.ELEMENTWISE
        }

    patch.function("graph.passes.fusion.kernels:patterns_of", wrong)


@GRAPHS(f"{DEVICES}/regions.py", tests=f"{DEVICES}/test_regions.py")
def regions_wait_for_themselves(patch: Patch) -> None:
    """Regions are merged although a path leads through a third one."""
    patch.function("graph.passes.devices.regions:_meet_outside", lambda *_: False)


@GRAPHS(f"{DEVICES}/regions.py", tests=f"{DEVICES}/test_regions.py")
def paths_are_one_step_long(patch: Patch) -> None:
    """Only the direct users of a region are looked at for a path outside."""

    def wrong(original, a, b):
        return any(b in after.after for after in a.after if after is not b)

    patch.function("graph.passes.devices.regions:_meet_outside", wrong)


@GRAPHS(f"{DEVICES}/regions.py", tests=f"{DEVICES}/test_regions.py")
def merged_members_are_lost(patch: Patch) -> None:
    """A merged region forgets the nodes of one of the two."""

    def wrong(original, a, b):
        kept = b.members
        original(a, b)
        b.members = kept

    patch.function("graph.passes.devices.regions:_merge", wrong)


@GRAPHS(f"{DEVICES}/regions.py", tests=f"{DEVICES}/test_regions.py")
def merged_users_are_lost(patch: Patch) -> None:
    """A merged region forgets who uses the values of one of the two."""

    def wrong(original, a, b):
        users = set(b.after)
        original(a, b)
        b.after &= users

    patch.function("graph.passes.devices.regions:_merge", wrong)


@GRAPHS(f"{LAYOUTS}/search.py", tests=LAYOUTS)
def operands_cost_nothing(patch: Patch) -> None:
    """Changes of the layouts of operands are not counted."""
    patch.method("graph.passes.layouts.search:_Network", "add_operands", lambda *_: None)


@GRAPHS(f"{LAYOUTS}/search.py", tests=LAYOUTS)
def readers_cost_nothing(patch: Patch) -> None:
    """Changes back to the layout that others need are not counted."""
    patch.method("graph.passes.layouts.search:_Network", "add_plain_reader", lambda *_: None)


@GRAPHS(f"{LAYOUTS}/search.py", tests=LAYOUTS)
def edges_are_transposed(patch: Patch) -> None:
    """The costs of a pair are taken for those of the pair in the other order."""

    def wrong(original, self, a, b, table):
        square = table.shape[0] == table.shape[1]
        original(self, a, b, np.ascontiguousarray(table.T) if square else table)

    patch.method("graph.passes.layouts.search:_Network", "add_edge", wrong)


@GRAPHS(f"{LAYOUTS}/search.py", tests=LAYOUTS)
def parallel_edges_replace(patch: Patch) -> None:
    """Of several edges between two calls, only the last one counts."""

    def wrong(original, self, a, b, table):
        for x, y in ((a, b), (b, a)):
            self.edges.get(x, {}).pop(y, None)
        original(self, a, b, table)

    patch.method("graph.passes.layouts.search:_Network", "add_edge", wrong)


@GRAPHS(f"{LAYOUTS}/search.py", tests=LAYOUTS)
def eliminated_without_its_cost(patch: Patch) -> None:
    """A call that is eliminated hands on the costs of its edges, not its own."""
    patch.function(
        "graph.passes.layouts.search:_eliminate",
        lambda original, costs, *rest: original(np.zeros_like(costs), *rest),
    )


@GRAPHS(f"{MEMORY}/plan.py", tests=MEMORY)
def parts_are_stored_over(patch: Patch) -> None:
    """What lies in a result of a concatenation is taken to be dead once it was joined."""
    patch.method("graph.memory.plan:_Planner", "_conflict", lambda *_: "")


@GRAPHS(f"{MEMORY}/values.py", tests=MEMORY)
def reshapes_read_the_first_part(patch: Patch) -> None:
    """A reshape of a part of a tuple is stored where the first part is."""

    def wrong(original, call, trees):
        found = original(call, trees)
        tree = trees[call.args[0]] if found is not None else None
        return tree[0] if isinstance(tree, tuple) else found

    patch.function("graph.memory.values:_reshaped", wrong)


@GRAPHS(f"{MEMORY}/values.py", tests=MEMORY)
def any_reader_overwrites(patch: Patch) -> None:
    """A kernel writes over an input that others read later."""

    def wrong(original, kernel, types):
        for _, value in kernel.inputs:
            value.used_at = min(value.used_at, kernel.number)
        return original(kernel, types)

    patch.function("graph.memory.values:overwritten", wrong)
