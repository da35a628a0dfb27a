"""Mistakes in bound inference and in the building of nests."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from dlcompiler.arith import Span
from dlcompiler.ir import Binary, Const, For, Not, binary, const, index_const, seq
from dlcompiler.ir.stmt import Buffer
from dlcompiler.lowering.pieces import Inside
from dlcompiler.passes.simplify import NOTHING
from dlcompiler.te import ComputeOp
from tests.mutants.mutant import Family
from tests.mutants.patching import Patch

LOWERING = Family()
BOUNDS, NEST = "schedule/inference/bounds.py", "lowering/loop_builder.py"


@LOWERING(BOUNDS, quick=True)
def tail_guard_dropped(patch: Patch) -> None:
    """A split that does not divide gets no guard."""
    patch.method("schedule.inference.bounds:BoundInference", "guards", lambda original, *args: ())


@LOWERING(BOUNDS, quick=True)
def predicate_inverted(patch: Patch) -> None:
    """An iteration runs when its guard does not hold."""
    patch.method(
        "schedule.inference.bounds:BoundInference",
        "guards",
        lambda original, *args: tuple(Not(guard) for guard in original(*args)),
    )


@LOWERING(BOUNDS)
def last_guard_dropped(patch: Patch) -> None:
    """Of several guards, the last one is forgotten."""
    patch.method(
        "schedule.inference.bounds:BoundInference",
        "guards",
        lambda original, *args: guards[:-1] if len(guards := original(*args)) > 1 else guards,
    )


@LOWERING(BOUNDS)
def outer_extent_rounded_down(patch: Patch) -> None:
    """A split that does not divide loses its last, partial iteration."""

    def wrong(original, extent, factor, nparts, **options):
        outer, inner = original(extent, factor, nparts, **options)
        return (max(extent // inner, 1) if factor else outer), inner

    patch.function("schedule.inference.bounds:split_extents", wrong)


@LOWERING(BOUNDS)
def nparts_rounded_down(patch: Patch) -> None:
    """A split in parts makes the parts too short."""

    def wrong(original, extent, factor, nparts, **options):
        outer, inner = original(extent, factor, nparts, **options)
        return outer, (max(extent // outer, 1) if nparts else inner)

    patch.function("schedule.inference.bounds:split_extents", wrong)


@LOWERING(BOUNDS, quick=True)
def region_one_short(patch: Patch) -> None:
    """The region of an attached stage lacks its last index."""

    def wrong(original, *args):
        span = original(*args)
        return replace(span, extent=span.extent - 1) if span and span.extent > 1 else span

    patch.function("arith.region:relax", wrong)


@LOWERING(BOUNDS)
def region_of_one_reader(patch: Patch) -> None:
    """Of two readers, only the first one's region is computed."""
    patch.function("arith.region:union", lambda original, a, b, analyzer: a)


@LOWERING(BOUNDS)
def region_from_zero(patch: Patch) -> None:
    """A region is as long as it should be, and starts at the tensor's first element."""

    def wrong(original, *args):
        return tuple(Span(span.first.plus(span.first, -1), span.extent) for span in original(*args))

    patch.method("schedule.inference.bounds:BoundInference", "region", wrong)


@LOWERING(BOUNDS)
def region_of_the_loop_above(patch: Patch) -> None:
    """The region stands for one iteration of a loop further in than the attachment's."""

    def wrong(original, self, stage):
        enclosing = original(self, stage)
        if not enclosing:
            return enclosing
        parent = self.state.stage(stage.attachment.stage)
        at = parent.position(stage.attachment.axis)
        deeper = parent.leaves[at + 1 : at + 2]
        return (*enclosing, *(self.done[parent.name].loop_vars[leaf] for leaf in deeper))

    patch.method("schedule.inference.bounds:BoundInference", "enclosing", wrong)


@LOWERING(BOUNDS, quick=True)
def fused_axes_swapped(patch: Patch) -> None:
    """Of a fused loop, the quotient counts the inner axis and the remainder the outer one."""
    other = {"floordiv": "floormod", "floormod": "floordiv"}
    patch.value(
        "schedule.inference.relations", "binary", lambda op, a, b: Binary(other.get(op, op), a, b)
    )


@LOWERING(BOUNDS)
def split_steps_too_far(patch: Patch) -> None:
    """One iteration of the outer half of a split counts for one too many."""

    def wrong(op, a, b):
        is_step = op == "mul" and isinstance(b, Const)
        return Binary(op, a, index_const(int(b.value) + 1) if is_step else b)

    patch.value("schedule.inference.relations", "binary", wrong)


@LOWERING(NEST, quick=True)
def extent_one_short(patch: Patch) -> None:
    """Every loop of more than one iteration misses the last."""

    def wrong(original, *args):
        loop = original(*args)
        if isinstance(loop.extent, Const) and loop.extent.value > 1:
            shorter = index_const(int(loop.extent.value) - 1)
            return For(loop.var, shorter, loop.kind, loop.body, loop.origin)
        return loop

    patch.method("lowering.loop_builder:LoopBuilder", "loop", wrong)


@LOWERING(NEST)
def extent_one_long(patch: Patch) -> None:
    """Every loop runs once too often."""

    def wrong(original, *args):
        loop = original(*args)
        longer = binary("add", loop.extent, index_const(1))
        return For(loop.var, longer, loop.kind, loop.body, loop.origin)

    patch.method("lowering.loop_builder:LoopBuilder", "loop", wrong)


@LOWERING(NEST, quick=True)
def init_dropped(patch: Patch) -> None:
    """A reduction starts from what is in memory."""
    patch.method("lowering.loop_builder:LoopBuilder", "init_nest", lambda original, *args: NOTHING)


@LOWERING(NEST)
def init_after_update(patch: Patch) -> None:
    """A reduction is initialised when it is over."""

    def wrong(original, self, stage, limits, leaves, outside, inside):
        if inside.init is not None:
            inside = Inside(inside.update, inside.init)
        return original(self, stage, limits, leaves, outside, inside)

    patch.method("lowering.loop_builder:LoopBuilder", "loops", wrong)


@LOWERING(NEST)
def init_outside_the_data_loops(patch: Patch) -> None:
    """The loops inside the reduction are left out of its initialisation."""

    def wrong(original, self, stage, limits, start, inner, guards):
        kept = [a for a in inner if a.kind != "data"]
        return original(self, stage, limits, start, kept, guards)

    patch.method("lowering.loop_builder:LoopBuilder", "init_nest", wrong)


@LOWERING("ir/expr.py", tests="te")
def identity_is_zero(patch: Patch) -> None:
    """Every reduction starts from 0, a maximum too."""
    patch.method("ir:Reducer", "identity", lambda original, self, dtype: const(0, dtype))


@LOWERING(NEST)
def attached_after_its_reader(patch: Patch) -> None:
    """An attached stage is computed behind the statements that read it."""

    def wrong(original, self, stage, leaf, body):
        marker = seq((body,))
        result = original(self, stage, leaf, marker)
        return _last_first(result, self) if result is not marker else result

    patch.method("lowering.loop_builder:LoopBuilder", "with_attached", wrong)


def _last_first(stmt, builder):
    """Turn the statements inside the allocations around."""
    from dlcompiler.ir import Allocate, Seq

    if isinstance(stmt, Allocate):
        return Allocate(stmt.buffer, _last_first(stmt.body, builder), stmt.origin)
    if isinstance(stmt, Seq):
        return seq((*stmt.statements[1:], stmt.statements[0]))
    return stmt


@LOWERING(NEST)
def region_offset_forgotten(patch: Patch) -> None:
    """An access to a buffer of a region counts from the tensor's start."""
    patch.method(
        "lowering.loop_builder:LoopBuilder",
        "shift",
        lambda original, self, tensor, indices: tuple(indices),
    )


@LOWERING(NEST)
def guard_of_attached_region_dropped(patch: Patch) -> None:
    """Attached stages are computed without their guards."""

    def wrong(original, self, stage):
        from dlcompiler.schedule import AttachedAt

        result = original(self, stage)
        return replace(result, guards=()) if isinstance(stage.attachment, AttachedAt) else result

    patch.method("schedule.inference.bounds:BoundInference", "stage_bounds", wrong)


@LOWERING(NEST)
def buffer_one_short(patch: Patch) -> None:
    """The buffer of an attached stage has no room for the last index."""

    def wrong(original, *args):
        buffer = original(*args)
        shape = tuple(max(extent - 1, 1) for extent in buffer.shape)
        return Buffer(buffer.name, shape, buffer.dtype, buffer.scope)

    patch.method("lowering.loop_builder:LoopBuilder", "internal_buffer", wrong)


@LOWERING("schedule/inference/inlining.py", quick=True)
def inlined_with_the_wrong_axis(patch: Patch) -> None:
    """A stage is inlined with its indices in the opposite order."""

    def wrong(original, parts, inlined):
        turned = {
            tensor: (SimpleNamespace(axis=op.axis[::-1]), expr)
            for tensor, (op, expr) in inlined.items()
        }
        return original(parts, turned)

    patch.function("schedule.inference.inlining:inline", wrong)


@LOWERING("schedule/primitives/cache_write.py")
def copied_before_computed(patch: Patch) -> None:
    """`cache_write` puts the copy in front of the stage that it copies."""

    def wrong(original, state, stage, context, **kwargs):
        result, tensor = original(state, stage, context, **kwargs)
        names = [item.name for item in result.stages]
        at = names.index(stage.name)
        stages = list(result.stages)
        stages[at - 1], stages[at] = stages[at], stages[at - 1]
        return replace(result, stages=tuple(stages), cache={}), tensor

    patch.function("schedule.primitives.cache_write:apply", wrong)


@LOWERING("schedule/primitives/rfactor.py")
def padding_counts(patch: Patch) -> None:
    """`rfactor` of a split that does not divide counts the points beyond the end, too."""

    def wrong(original, self, op):
        return original(replace(self, conditions=()), op)

    patch.method("schedule.primitives.rfactor:_Parts", "bodies", wrong)


@LOWERING("schedule/primitives/rfactor.py")
def start_forgotten(patch: Patch) -> None:
    """`rfactor` forgets what the reduction starts from."""

    def wrong(original, op, partial, last, place):
        result = original(op, partial, last, place)
        bodies = tuple(replace(body, init=()) for body in result.bodies)
        return ComputeOp(op.name, op.axis, bodies, op.tag)

    patch.function("schedule.primitives.rfactor:_combined", wrong)


@LOWERING(BOUNDS, tests="schedule")
def threads_clipped(patch: Patch) -> None:
    """Splits that threads derive from are clipped to the extent, too."""
    patch.function(
        "schedule.inference.thread_loops:axes_of_threads", lambda original, stage: frozenset()
    )


@LOWERING(BOUNDS, tests="schedule")
def only_the_loops_of_threads_keep_their_factor(patch: Patch) -> None:
    """Of several splits around a loop of threads, only the last one keeps its factor."""
    patch.function(
        "schedule.inference.thread_loops:axes_of_threads",
        lambda original, stage: original(replace(stage, relations=())),
    )


@LOWERING(BOUNDS, tests="schedule")
def nothing_is_clipped(patch: Patch) -> None:
    """Splits keep their factor without threads, too."""

    def wrong(original, extent, factor, nparts, *, is_clipped=True):
        return original(extent, factor, nparts, is_clipped=False)

    patch.function("schedule.inference.bounds:split_extents", wrong)
