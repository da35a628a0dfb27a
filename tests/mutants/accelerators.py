"""Mistakes in programs for accelerators: in how they are made, computed and timed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.mutants.mutant import Family
from tests.mutants.patching import Patch

ACCELERATORS = Family()
MADE, COMPUTED, TIMED = (
    "codegen/accelerator", "simulate/accelerators/functional", "simulate/accelerators/timing",
)  # fmt: skip
AWKWARD, UNITS = (f"{MADE}/test_{name}.py" for name in ("awkward_programs", "unit_programs"))
FUNCTIONAL, TIMING = (f"simulate/accelerators/test_{name}.py" for name in ("functional", "timing"))
TOKENS = "codegen.accelerator.tokens:ExactTokens"

# -- tokens ------------------------------------------------------------------------------------


@ACCELERATORS(f"{MADE}/tokens.py", tests=AWKWARD)
def readers_never_wait(patch: Patch) -> None:
    """An instruction does not wait for the writers of what it reads."""
    patch.method(
        TOKENS,
        "_needed",
        lambda original, self, draft: original(self, replace(draft, reads=())),
    )


@ACCELERATORS(f"{MADE}/tokens.py", tests=AWKWARD)
def writers_overtake_readers(patch: Patch) -> None:
    """An instruction does not wait for the readers of what it writes."""
    patch.method(
        TOKENS,
        "_note",
        lambda original, self, mine, number, draft: original(
            self, mine, number, replace(draft, reads=())
        ),
    )


@ACCELERATORS(f"{MADE}/tokens.py", tests=AWKWARD)
def tokens_stand_for_what_comes_later(patch: Patch) -> None:
    """A token is taken to stand for all instructions of its engine, later ones included."""

    def wrong(original, self, source, sink, number, draft):
        original(self, source, sink, number, draft)
        self._known[sink][source] = len(self._done[source])

    patch.method(TOKENS, "_token", wrong)


@ACCELERATORS(f"{MADE}/tokens.py", tests=AWKWARD)
def queues_have_room(patch: Patch) -> None:
    """An engine does not wait until its full queues have room."""
    patch.method(TOKENS, "_room", lambda *_: None)


@ACCELERATORS(f"{MADE}/tokens.py", tests=AWKWARD)
def last_token_is_one_like_others(patch: Patch) -> None:
    """The token that fills a queue is not pushed by the latest instruction."""
    patch.method(TOKENS, "_sender", lambda original, self, queue, source, sink, number: number)


# -- places, loops, copies ---------------------------------------------------------------------


@ACCELERATORS(f"{MADE}/places.py", tests=AWKWARD)
def buffers_share_places(patch: Patch) -> None:
    """All buffers begin at the first element of their memory."""
    patch.function(
        "codegen.accelerator.places:chip_places",
        lambda original, func, accelerator: dict.fromkeys(original(func, accelerator), 0),
    )


@ACCELERATORS(f"{MADE}/places.py", tests=AWKWARD)
def aligned_rows_take_no_room(patch: Patch) -> None:
    """A buffer takes the room of its numbers, however far its rows are apart."""

    def wrong(original, buffer, numbers):
        return -(-int(np.prod(buffer.static_shape)) // numbers)

    patch.function("codegen.accelerator.places:_elements", wrong)


@ACCELERATORS(f"{MADE}/forms.py", tests=UNITS)
def bounds_end_early(patch: Patch) -> None:
    """A condition that ends a loop ends it one iteration early."""

    def wrong(original, self, base, extent):
        low, high = original(self, base, extent)
        return low, high - (self.factor < 0 and low < high < extent)

    patch.method("codegen.accelerator.forms:Bound", "limits", wrong)


@ACCELERATORS(f"{MADE}/nests.py", tests=UNITS)
def one_bound_of_a_loop(patch: Patch) -> None:
    """Of the conditions on a loop, only the last one counts."""

    def wrong(original, bounds, numbers, extents):
        kept = {bound.var or n: bound for n, bound in enumerate(bounds)}
        return original(tuple(kept.values()), numbers, extents)

    patch.function("codegen.accelerator.nests:limits_of", wrong)


@ACCELERATORS(f"{MADE}/computations.py", tests=f"{MADE}/test_loops.py")
def updates_may_be_neighbours(patch: Patch) -> None:
    """Updates of one element are not kept apart."""
    patch.function(
        "codegen.accelerator.computations:loops_of",
        lambda original, loops, operands, most, spacing=1: original(loops, operands, most),
    )


@ACCELERATORS(f"{MADE}/micro_ops.py", tests=AWKWARD)
def overwritten_micro_ops_are_used(patch: Patch) -> None:
    """A list of micro-ops is taken to be in the memory after others took its place."""

    def wrong(original, self, micro_ops, site=0):
        held = dict(self._held)
        found = original(self, micro_ops, site)
        self._held |= held
        return found

    patch.method("codegen.accelerator.micro_ops:MicroOpCache", "find", wrong)


@ACCELERATORS(f"{MADE}/micro_ops.py", tests=UNITS)
def lists_begin_at_odd_places(patch: Patch) -> None:
    """Lists of micro-ops lie behind each other without a gap."""
    patch.value("codegen.accelerator.micro_ops", "PAIR", 1)


@ACCELERATORS(f"{MADE}/copies.py", tests=UNITS)
def zeros_on_the_other_side(patch: Patch) -> None:
    """The zeros to the left and to the right of a load change places."""

    def wrong(original, self, *args):
        made = original(self, *args)
        top, bottom, left, right = made.pads
        return replace(made, pads=(top, bottom, right, left))

    patch.method("codegen.accelerator.copies:CopyPattern", "_block", wrong)


@ACCELERATORS(f"{MADE}/copies.py", tests=AWKWARD)
def zeros_outside_the_buffer(patch: Patch) -> None:
    """Guards of a load become padding, though its zeros lie outside its buffer."""
    patch.function("codegen.accelerator.copies:_stays_inside", lambda original, *args: True)


@ACCELERATORS(f"{MADE}/patterns.py", tests=AWKWARD)
def operands_are_written_over(patch: Patch) -> None:
    """An operation reads an element after the operation before it has written it."""
    patch.method(
        "codegen.accelerator.patterns:Patterns", "_check_order", lambda *_, **options: None
    )


# -- values ------------------------------------------------------------------------------------


@ACCELERATORS(f"{COMPUTED}/compute.py", tests=f"{MADE}/test_own_dtypes.py")
def amounts_become_unsigned(patch: Patch) -> None:
    """A shift to the left by a number becomes one of the dtype of the elements."""

    def wrong(original, operation, left, right):
        return original(operation, left, np.asarray(right).astype(left.dtype))

    patch.function("simulate.accelerators.functional.compute:apply", wrong)


@ACCELERATORS(f"{COMPUTED}/compute.py", tests=FUNCTIONAL)
def updates_of_one_element_are_lost(patch: Patch) -> None:
    """All updates of an elementwise instruction run at once, also those of one element."""
    patch.function(
        "simulate.accelerators.functional.compute:_waves", lambda *_, **options: [slice(None)]
    )


@ACCELERATORS(f"{COMPUTED}/races.py", tests=FUNCTIONAL)
def reads_never_race(patch: Patch) -> None:
    """A read of what another engine writes at any time is no race."""

    def wrong(original, self, place, engine, clock):
        original(self, place, engine, clock)

    patch.method("simulate.accelerators.functional.races:Shadow", "read", wrong)


@ACCELERATORS(f"{COMPUTED}/state.py", tests=FUNCTIONAL)
def memories_begin_written(patch: Patch) -> None:
    """A read of what was never written is not found."""
    patch.method(
        "simulate.accelerators.functional.state:State", "require_written", lambda *args: None
    )


@ACCELERATORS(
    "simulate/accelerators/containers.py", tests="simulate/accelerators/test_containers.py"
)
def places_are_not_checked(patch: Patch) -> None:
    """Buffers of a program in a file may lie outside DRAM."""
    patch.function("simulate.accelerators.images:problem_of_places", lambda original, program: "")


# -- cycles ------------------------------------------------------------------------------------


@ACCELERATORS(f"{TIMED}/general.py", tests=TIMING)
def copies_share_no_port(patch: Patch) -> None:
    """Copies of several engines use the memory port at the same time."""

    def wrong(original, self, step, time):
        self._port_free = 0
        original(self, step, time)

    patch.method("simulate.accelerators.timing.general:GeneralProfile", "begin", wrong)


@ACCELERATORS(f"{TIMED}/machine.py", tests=TIMING)
def engines_queue_without_end(patch: Patch) -> None:
    """The queue of an engine is never full."""

    def wrong(original, self, program):
        original(self, program)
        self.depths = [1 << 30] * len(self.depths)

    patch.method("simulate.accelerators.timing.machine:Machine", "__init__", wrong)


@ACCELERATORS(f"{TIMED}/profile_2021.py", tests=TIMING)
def zeros_take_no_time(patch: Patch) -> None:
    """The zeros around a load are written while its data comes."""
    patch.function("simulate.accelerators.timing.profile_2021:_last_zero", lambda *_: -1)
