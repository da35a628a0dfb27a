"""Mistakes in the passes."""

from __future__ import annotations

from dataclasses import replace

from dlcompiler.arith import Interval
from dlcompiler.ir import Barrier, For, If, Ramp, binary, index_const, substitute
from dlcompiler.passes.base import in_copies
from dlcompiler.passes.simplify import NOTHING
from tests.mutants.mutant import Family
from tests.mutants.patching import Patch

PASSES = Family()
DOUBLE = "passes/inject_double_buffer.py"
SIMPLIFY, VECTORIZE, UNROLL = (
    f"passes/{name}.py" for name in ("simplify", "vectorize_loops", "unroll_loops")
)


@PASSES(SIMPLIFY)
def else_branch_lost(patch: Patch) -> None:
    """A condition that is never true removes the other branch, too."""

    def wrong(original, self, stmt):
        return original(self, If(stmt.condition, stmt.then, None))

    patch.method("passes.simplify:_Simplifier", "conditional", wrong)


@PASSES(SIMPLIFY)
def range_one_short(patch: Patch) -> None:
    """The simplifier thinks that a loop ends one iteration earlier."""

    def wrong(original, self, var, interval):
        return original(self, var, Interval(interval.low, max(interval.high - 1, interval.low)))

    patch.method("passes.simplify:_Simplifier", "declare", wrong)


@PASSES(SIMPLIFY)
def short_loop_removed(patch: Patch) -> None:
    """A loop that runs once is taken for one that never runs."""

    def wrong(original, self, loop):
        from dlcompiler.passes.base import constant_extent

        return NOTHING if constant_extent(loop) == 1 else original(self, loop)

    patch.method("passes.simplify:_Simplifier", "loop", wrong)


@PASSES(UNROLL)
def unroll_off_by_one(patch: Patch) -> None:
    """The last copy of an unrolled body is missing."""

    def wrong(original, func, **options):
        return original(_rewritten(func, _shorter), **options)

    patch.function("passes.unroll_loops:unroll_loops", wrong)


@PASSES(UNROLL)
def unroll_from_one(patch: Patch) -> None:
    """Unrolled copies count from 1."""

    def later(loop):
        shifted = substitute(loop.body, {loop.var: loop.var + 1})
        return For(loop.var, loop.extent, loop.kind, shifted, loop.origin)

    patch.function(
        "passes.unroll_loops:unroll_loops",
        lambda original, func, **options: original(_rewritten(func, later), **options),
    )


def _shorter(loop):
    from dlcompiler.passes.base import constant_extent

    extent = constant_extent(loop)
    if extent is None or extent < 2:
        return loop
    return For(loop.var, index_const(extent - 1), loop.kind, loop.body, loop.origin)


def _rewritten(func, change):
    from dlcompiler.ir import rewrite

    def rule(node):
        return change(node) if isinstance(node, For) and node.kind == "unrolled" else node

    return func.with_body(rewrite(func.body, rule))


@PASSES(VECTORIZE)
def guard_of_the_first_lane(patch: Patch) -> None:
    """A vector runs when its guard holds in lane 0."""

    def wrong(original, condition, var, first, last):
        result = original(condition, var, first, last)
        return result and result._replace(in_all=substitute(condition, {var: index_const(first)}))

    patch.function("passes.lane_guards:lane_test", wrong)


@PASSES(VECTORIZE)
def vector_tail_dropped(patch: Patch) -> None:
    """Iterations that do not fill a vector are left out."""

    def wrong(original, self, stmt):
        result = original(self, stmt)
        return If(result.condition, result.then) if isinstance(result, If) else result

    patch.method("passes.vectorize_loops:_LoopVectorizer", "guarded", wrong)


@PASSES(VECTORIZE)
def unsafe_choice_vectorized(patch: Patch) -> None:
    """A choice that guards a load is computed for all lanes."""
    patch.method(
        "passes.lane_vectors:LaneVectors",
        "_load",
        lambda original, self, load, mask: original(self, load, None),
    )


@PASSES(VECTORIZE)
def wrong_lane_stride(patch: Patch) -> None:
    """Lanes are two elements apart."""

    def wrong(original, self, expr, mask):
        result = original(self, expr, mask)
        if isinstance(result, Ramp) and expr is self.var:
            return Ramp(result.base, index_const(2), result.lanes)
        return result

    patch.method("passes.lane_vectors:LaneVectors", "vector", wrong)


@PASSES(VECTORIZE)
def vector_operands_swapped(patch: Patch) -> None:
    """A vector operation takes its operands in the opposite order."""
    patch.method(
        "passes.lane_vectors:LaneVectors",
        "_binary",
        lambda original, self, expr, a, b: original(self, expr, b, a),
    )


@PASSES(VECTORIZE)
def rounds_dropped(patch: Patch) -> None:
    """Of a loop longer than the widest vector, the last vector is missing."""

    def wrong(original, func, **options):
        result = original(func, **{**options, "max_lanes": 8})
        from dlcompiler.ir import rewrite

        def rule(node):
            if isinstance(node, For) and node.var.name.endswith(".round"):
                return replace(node, extent=node.extent - 1)
            return node

        return result.with_body(rewrite(result.body, rule))

    patch.function("passes.vectorize_loops:vectorize_loops", wrong)


@PASSES("passes/base.py")
def origin_forgotten(patch: Patch) -> None:
    """A loop that is removed does not hand on where it comes from."""
    patch.function("passes.base:push_origin", lambda original, body, origin: body)


@PASSES("passes/storage_rewrite.py")
def live_buffers_share_memory(patch: Patch) -> None:
    """Buffers may share memory although one is read after the other is written."""
    patch.function("passes.storage_rewrite:_is_apart", lambda original, a, b: a[0] != b[0])


@PASSES("passes/storage_rewrite.py")
def always_in_place(patch: Patch) -> None:
    """A nest may write over what it reads, whatever the places."""
    patch.function("passes.storage_rewrite:_is_in_place", lambda original, *args: True)


@PASSES("passes/partition_loops.py")
def main_part_too_long(patch: Patch) -> None:
    """The part of a loop that needs no guards takes in the iteration behind its end."""

    def wrong(original, self, loop, bounds):
        start, stop = original(self, loop, bounds)
        later = binary("min", binary("add", stop, index_const(1)), loop.extent)
        return start, self.analyzer(self.loops).simplify(later)

    patch.method("passes.partition_loops:_Partitioner", "ends", wrong)


@PASSES(DOUBLE)
def halves_not_exchanged(patch: Patch) -> None:
    """What is filled ahead is written over what this iteration reads."""

    def wrong(stmt, copies, index):
        return in_copies(stmt, copies, index_const(0))

    patch.value("passes.inject_double_buffer", "in_copies", wrong)


@PASSES(DOUBLE, tests="schedule")
def all_barriers_dropped(patch: Patch) -> None:
    """Threads do not wait before they fill the other half."""
    patch.function(
        "passes.inject_double_buffer:_with_needed_barriers",
        lambda original, stmts, fills, own: tuple(s for s in stmts if not isinstance(s, Barrier)),
    )


@PASSES(DOUBLE, tests="schedule")
def halves_filled_again_at_once(patch: Patch) -> None:
    """Threads fill the first half while others may read it, in the last run of the loop."""
    patch.method(
        "passes.inject_double_buffer:_Around",
        "inside",
        lambda original, self, loop: replace(original(self, loop), is_repeated=False),
    )


@PASSES(DOUBLE, tests="schedule")
def other_memory_does_not_matter(patch: Patch) -> None:
    """Barriers go that order the use of memory which is not doubled."""
    patch.function("passes.inject_double_buffer:_conflict", lambda original, *args: False)


@PASSES(DOUBLE)
def loaded_an_iteration_late(patch: Patch) -> None:
    """What is filled ahead is the part of this iteration."""

    def wrong(op, a, b):
        return a if op == "add" and b == 1 else binary(op, a, b)

    patch.value("passes.inject_double_buffer", "binary", wrong)


@PASSES("passes/vectorize_unrolled.py", tests="passes/test_vectorize_unrolled.py")
def iterations_read_each_other(patch: Patch) -> None:
    """An unrolled loop becomes a vector although an iteration reads what another one stores."""
    patch.function("passes.vectorize_unrolled:_are_same", lambda original, places: True)
