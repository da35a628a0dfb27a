"""Mistakes in what a schedule allows."""

from __future__ import annotations

from dataclasses import replace

from dlcompiler.schedule.inference.inlining import consumers
from dlcompiler.schedule.verdict import LEGAL
from tests.mutants.mutant import Family
from tests.mutants.patching import Patch

LEGALITY = Family()
VALIDITY = "schedule/legality/validity.py"
OBLIGATIONS = "schedule/legality/obligations.py"


@LEGALITY("schedule/primitives/parallel.py", quick=True)
def reduction_parallelised(patch: Patch) -> None:
    """`parallel` accepts a reduction loop."""
    patch.function("schedule.primitives.parallel:check", lambda original, state, stage, axis: LEGAL)


@LEGALITY("schedule/primitives/vectorize.py")
def reduction_vectorized(patch: Patch) -> None:
    """`vectorize` accepts a reduction loop."""
    patch.function(
        "schedule.primitives.vectorize:check", lambda original, state, stage, axis: LEGAL
    )


@LEGALITY("schedule/primitives/compute_inline.py")
def reduction_inlined(patch: Patch) -> None:
    """`compute_inline` accepts a reduction."""
    patch.function("schedule.state:is_reduction", lambda original, stage: False)
    patch.function(
        "schedule.primitives.compute_inline:check",
        lambda original, state, stage: _unless_stored(stage),
    )


def _unless_stored(stage):
    from dlcompiler.schedule.verdict import Illegal

    stored = stage.is_placeholder or stage.is_output
    return Illegal("structural", "stored") if stored else LEGAL


@LEGALITY("schedule/primitives/compute_inline.py")
def output_inlined(patch: Patch) -> None:
    """`compute_inline` accepts an output."""

    def wrong(original, state, stage):
        return original(state, replace(stage, is_output=False))

    patch.function("schedule.primitives.compute_inline:check", wrong)


@LEGALITY(OBLIGATIONS, quick=True)
def outside_reader_allowed(patch: Patch) -> None:
    """`compute_at` does not look at readers outside the loop."""
    patch.function("schedule.legality.obligations:is_inside", lambda original, *args: True)


@LEGALITY(VALIDITY)
def only_the_first_reader_counts(patch: Patch) -> None:
    """`compute_at` looks at one of the readers only."""

    def wrong(original, state, stage):
        return original(state, stage)[:1]

    for module in ("schedule.legality.validity", "schedule.legality.obligations"):
        patch.value(module, "consumers", lambda state, stage: wrong(consumers, state, stage))


@LEGALITY(OBLIGATIONS)
def obligation_not_raised(patch: Patch) -> None:
    """An attachment to a loop that is gone leaves no pending obligation."""
    patch.function("schedule.legality.obligations:obligations", lambda original, state: ())


@LEGALITY(VALIDITY)
def states_not_checked(patch: Patch) -> None:
    """Nothing looks at the state that a step leads to."""
    patch.function("schedule.legality.validity:problems", lambda original, *states: iter(()))


@LEGALITY(VALIDITY)
def two_vectorized_loops_allowed(patch: Patch) -> None:
    """A nest may have several vectorized loops."""
    patch.function("schedule.legality.validity:_loop_problems", lambda original, stage: iter(()))


@LEGALITY("schedule/primitives/fuse.py")
def distant_loops_fused(patch: Patch) -> None:
    """`fuse` accepts loops in any order and of any kind."""
    patch.function("schedule.primitives.fuse:check", lambda original, state, stage, axes: LEGAL)


@LEGALITY("schedule/primitives/base.py")
def annotated_loops_split(patch: Patch) -> None:
    """A loop that is parallel or vectorized may be split or fused."""
    patch.function("schedule.primitives.base:require_plain", lambda original, stage, axis: None)


@LEGALITY("schedule/primitives/reorder.py")
def reorder_drops_a_loop(patch: Patch) -> None:
    """`reorder` writes one of the loops twice and loses another."""

    def wrong(original, stage, axes):
        result = original(stage, axes)
        return replace(result, leaves=(*result.leaves[:-1], result.leaves[0]))

    patch.function("schedule.primitives.reorder:reorder_stage", wrong)


@LEGALITY(VALIDITY)
def started_outside(patch: Patch) -> None:
    """What starts a reduction may be computed inside its loops."""
    patch.function("schedule.legality.validity:_starts_outside", lambda original, *args: False)


@LEGALITY("schedule/legality/reducers.py")
def any_order_allowed(patch: Patch) -> None:
    """Reductions whose result depends on their order may be reordered."""
    patch.function("schedule.legality.reducers:_require", lambda original, *args: None)


@LEGALITY("schedule/inference/relations.py")
def padding_of_layouts_read(patch: Patch) -> None:
    """Splits that do not divide guard nothing in caches and partial results."""
    patch.function("schedule.inference.relations:guards", lambda original, relations, values: [])


@LEGALITY("schedule/inference/layout_bodies.py")
def padding_computed(patch: Patch) -> None:
    """A layout computes its padding, too, and reads outside for it."""
    patch.function(
        "schedule.inference.layout_bodies:layout_bodies",
        lambda original, op, values, condition: original(op, values, None),
    )


@LEGALITY(VALIDITY)
def rounding_changes_no_nest(patch: Patch) -> None:
    """A step that only rounds up what a stage computes is not checked."""

    def wrong(original, stage, before):
        if not before.has_stage(stage.name):
            return False
        old = before.stage(stage.name)
        return original(replace(stage, rounded=old.rounded), before)

    patch.function("schedule.legality.validity:_has_same_nest", wrong)


@LEGALITY(VALIDITY)
def whole_axes_are_the_longest(patch: Patch) -> None:
    """Unrolled loops are judged by the extents that their axes were made with."""
    patch.function(
        "schedule.inference.bounds:largest_extents",
        lambda original, stage: {axis: axis.extent for axis in stage.paths},
    )


@LEGALITY("schedule/legality/double_buffers.py")
def anything_computed_ahead(patch: Patch) -> None:
    """`double_buffer` does not ask what its stage reads, nor how its loop runs."""
    patch.function(
        "schedule.legality.double_buffers:double_buffer_problems", lambda original, *args: iter(())
    )


@LEGALITY("schedule/primitives/rfactor.py")
def threads_beside_change(patch: Patch) -> None:
    """`rfactor` changes the number of threads of loops beside the factored one."""
    patch.function(
        "schedule.primitives.rfactor:_require_same_threads", lambda original, *args: None
    )


@LEGALITY("schedule/state.py")
def bounds_kept_over_any_step(patch: Patch) -> None:
    """A step keeps what is known of the state before, though it changes loops."""

    def wrong(original, self, stage, id):
        result = original(self, stage, id)
        if "bounds" in self.cache and self.cache.get("placed") is self:
            result.cache.update(bounds=self.cache["bounds"], placed=result)
        return result

    patch.method("schedule.state:State", "with_stage", wrong)


@LEGALITY("schedule/legality/thread_problems.py", tests="schedule/test_device_programs.py")
def stages_inside_are_as_before(patch: Patch) -> None:
    """A stage is not checked again if only the loops of threads around it have changed."""
    patch.function(
        "schedule.legality.thread_problems:_is_as_before",
        lambda original, state, stage, before: (
            before.has_stage(stage.name) and before.stage(stage.name) is stage
        ),
    )


@LEGALITY("schedule/primitives/compute_inline.py", tests="schedule/primitives/test_attachment.py")
def inlined_stages_are_unchecked(patch: Patch) -> None:
    """A stage is inlined although the check of an index into it is lost."""
    patch.function(
        "schedule.primitives.compute_inline:require_checked", lambda original, *args: None
    )
