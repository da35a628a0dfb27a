"""Mistakes in what keeps accesses inside their arrays, and in what verification relies on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dlcompiler.arith import Interval
from dlcompiler.ir import For, IntrinsicCall, Logical, Select, Seq, binary, const
from dlcompiler.ir.stmt import Store
from dlcompiler.lowering.index_checks import IndexChecks
from dlcompiler.measurement.equality import Differences
from dlcompiler.passes.batch_assertions import LANES
from dlcompiler.schedule.state import NOTES
from tests.mutants.mutant import Family
from tests.mutants.patching import Patch

SAFETY = Family()
IMPLICATION, INEQUALITIES = "arith/implication.py", "arith/inequalities.py"
CHECKS, BATCH = "lowering/index_checks.py", "passes/batch_assertions.py"
LAWS, EQUALITY = "te/reducers/laws.py", "measurement/equality.py"

# -- the prover -------------------------------------------------------------------------------


@SAFETY(IMPLICATION, tests="arith/test_implication.py")
def case_forgotten(patch: Patch) -> None:
    """Of the cases of a proof, only the first is looked at."""
    patch.method(
        "arith.implication:_Case",
        "splits",
        lambda original, self, form: (way[:1] for way in original(self, form)),
    )


@SAFETY(IMPLICATION, tests="arith/test_implication.py")
def at_most_is_less(patch: Patch) -> None:
    """The condition ``a <= b`` is taken for ``a < b``."""
    stricter = {"le": "lt", "ge": "gt"}
    patch.method(
        "arith.implication:_Case",
        "compare",
        lambda original, self, op, a, b: original(self, stricter.get(op, op), a, b),
    )


@SAFETY(IMPLICATION, tests="arith/test_implication.py")
def not_both_is_neither(patch: Patch) -> None:
    """Where a conjunction does not hold, none of its parts does."""

    def wrong(original, self, condition, is_true=True):
        if isinstance(condition, Logical) and not is_true:
            self.assume(condition.a, False)
            self.assume(condition.b, False)
        else:
            original(self, condition, is_true)

    patch.method("arith.implication:_Case", "assume", wrong)


@SAFETY(IMPLICATION, tests="arith/test_implication.py")
def either_is_both(patch: Patch) -> None:
    """Where a disjunction holds, both of its parts do."""

    def wrong(original, self, condition, is_true=True):
        if isinstance(condition, Logical) and is_true:
            self.assume(condition.a)
            self.assume(condition.b)
        else:
            original(self, condition, is_true)

    patch.method("arith.implication:_Case", "assume", wrong)


@SAFETY(IMPLICATION, tests="arith/test_implication.py")
def negation_keeps_its_end(patch: Patch) -> None:
    """The negation of ``a < b`` is ``a > b``."""
    patch.value(
        "arith.implication",
        "NEGATION",
        {"eq": "ne", "ne": "eq", "lt": "gt", "ge": "le", "gt": "lt", "le": "ge"},
    )


@SAFETY(INEQUALITIES, tests="arith/test_implication.py")
def tightening_rounds_up(patch: Patch) -> None:
    """The constant of an inequality, divided by the common divisor of its factors, rounds up."""

    def wrong(original, self, terms, constant):
        divisor = math.gcd(*terms.values()) if terms else 1
        return original(self, terms, -(-constant // divisor) * divisor)

    patch.method("arith.inequalities:_System", "add", wrong)


@SAFETY(INEQUALITIES, tests="arith/test_implication.py")
def weakest_row_kept(patch: Patch) -> None:
    """Of rows with the same factors, the last one counts and not the strongest."""

    def wrong(original, self, terms, constant):
        if terms:
            divisor = math.gcd(*terms.values())
            self.rows.pop(frozenset((v, f // divisor) for v, f in terms.items()), None)
        return original(self, terms, constant)

    patch.method("arith.inequalities:_System", "add", wrong)


@SAFETY(INEQUALITIES, tests="arith/test_implication.py")
def scale_forgotten(patch: Patch) -> None:
    """A variable is eliminated with the constants of the rows as they are."""

    def wrong(original, a, b, gone):
        terms, _ = original(a, b, gone)
        return terms, a[1] + b[1]

    patch.function("arith.inequalities:_sum", wrong)


@SAFETY("arith/data_ranges.py", tests="lowering/test_index_checks.py")
def data_never_negative(patch: Patch) -> None:
    """Integers of all dtypes are taken to be unsigned."""

    def wrong(original, dtype):
        found = original(dtype)
        return Interval(max(found.low, 0), found.high) if dtype.startswith("int") else found

    patch.function("arith.data_ranges:dtype_range", wrong)


@SAFETY("arith/data_ranges.py", tests="lowering/test_index_checks.py")
def data_never_wraps(patch: Patch) -> None:
    """Operations on data are bounded as in mathematics, though they wrap."""

    def wrong(original, expr, of_index, depth=16):
        from dlcompiler.ir import Binary

        if isinstance(expr, Binary) and expr.dtype != "index" and expr.op == "add":
            a, b = (wrong(original, x, of_index, depth - 1) for x in (expr.a, expr.b))
            return Interval(a.low + b.low, a.high + b.high)
        return original(expr, of_index, depth)

    patch.function("arith.data_ranges:data_range", wrong)


# -- checks when the program runs --------------------------------------------------------------


@SAFETY(CHECKS, tests="lowering/test_index_checks.py")
def computed_index_unchecked(patch: Patch) -> None:
    """An index that is computed inside the loops of its stage is not checked."""
    patch.method("lowering.index_checks:IndexChecks", "inside", lambda original, *args: Seq(()))


@SAFETY(CHECKS, tests="lowering/test_index_checks.py")
def table_unchecked(patch: Patch) -> None:
    """What stands in a table of indices is not checked before the loops."""
    patch.method("lowering.index_checks:IndexChecks", "before", lambda original, *args: None)


@SAFETY(CHECKS, tests="lowering/test_index_checks.py")
def guard_of_check_dropped(patch: Patch) -> None:
    """An index is checked where its guard does not hold, too."""

    def wrong(original, self, read, axes, values):
        return original(self, replace(read, guards=()), axes, values)

    patch.method("lowering.index_checks:IndexChecks", "check", wrong)


@SAFETY(CHECKS, tests="lowering/test_index_checks.py")
def checked_when_it_is_over(patch: Patch) -> None:
    """The checks of a stage stand behind its loops."""
    before = IndexChecks.before

    def wrong(original, builder, stage, bounds, checks):
        own = original(builder, stage, bounds, checks)
        found = before(checks, builder.bodies[stage.name])
        if found is None:
            return own
        builder.axes[checks.origin] = frozenset()
        return Seq((own, found))

    patch.method("lowering.index_checks:IndexChecks", "before", lambda original, *args: None)
    patch.function("lowering.nest:_own_nest", wrong)


@SAFETY(CHECKS, tests="lowering/test_index_checks.py")
def checked_for_one_row(patch: Patch) -> None:
    """Of a table of two dimensions, the indices of its first row are checked only."""

    def wrong(original, self, axes, read):
        nest = original(self, axes, read)
        if isinstance(nest, For) and isinstance(nest.body, For):
            return replace(nest, extent=binary("min", nest.extent, const(1, "index")))
        return nest

    patch.method("lowering.index_checks:IndexChecks", "nest", wrong)


@SAFETY(BATCH, tests="passes/test_batch_assertions.py")
def tail_lanes_unchecked(patch: Patch) -> None:
    """Tests that do not fill all lanes are left out."""

    def wrong(original, loop, holds):
        made = original(loop, holds)
        if isinstance(loop.body, For):
            return made
        return replace(made, extent=binary("floordiv", loop.extent, LANES))

    patch.function("passes.batch_assertions:_tests", wrong)


@SAFETY(BATCH, tests="passes/test_batch_assertions.py")
def earlier_tests_forgotten(patch: Patch) -> None:
    """A lane keeps the result of its last test only."""

    def wrong(original, holds, lane, check, origin):
        made = original(holds, lane, check, origin)
        value = Select(check.condition, const(True, "bool"), const(False, "bool"))
        return replace(made, value=value)

    patch.function("passes.batch_assertions:_and", wrong)


@SAFETY("passes/inject_double_buffer.py", tests="lowering/test_index_checks.py")
def checks_stay_behind(patch: Patch) -> None:
    """What is computed ahead is checked an iteration late."""
    patch.function("passes.inject_double_buffer:_is_check", lambda original, stmt: False)


@SAFETY("te/extern/checks.py", tests="te/test_extern_checks.py")
def facts_outlive_stores(patch: Patch) -> None:
    """A condition on an element holds on, though its buffer is written."""
    patch.method("te.extern.checks:_Place", "forgetting", lambda original, self, *parts: self)


@SAFETY("te/extern/checks.py", tests="te/test_extern_checks.py")
def stores_unchecked(patch: Patch) -> None:
    """Statements of the user's own may store anywhere."""

    def wrong(original, self, stmt):
        if isinstance(stmt, Store | IntrinsicCall):
            return iter(())
        return original(self, stmt)

    patch.method("te.extern.checks:_Place", "checks", wrong)


@SAFETY("codegen/llvm/assertions.py", tests="lowering/test_index_checks.py")
def values_reported_in_reverse(patch: Patch) -> None:
    """The values of an assertion are reported in the opposite order."""

    def wrong(original, w, condition, status, message, values=()):
        return original(w, condition, status, message, list(reversed(values)))

    patch.function("codegen.llvm.assertions:write", wrong)


@SAFETY("te/extern/zeros.py", tests="te/test_hybrid_zeros.py")
def scripts_begin_with_anything(patch: Patch) -> None:
    """What a hybrid script reads or returns unwritten is what was in memory."""
    patch.function("te.extern.zeros:_first_written", lambda original, *args: ())


# -- reducers ----------------------------------------------------------------------------------


@SAFETY(LAWS, tests="te/test_reducer_laws.py")
def identity_not_checked(patch: Patch) -> None:
    """Whatever a reducer calls its identity is one."""
    patch.function("te.reducers.laws:identity_violation", lambda original, *args, **options: None)


@SAFETY("te/reducers/samples.py", tests="te/test_reducer_laws.py")
def samples_without_negatives(patch: Patch) -> None:
    """Reducers are tried on numbers that are not negative."""
    for name in ("_integers", "_floats"):
        patch.method(
            "te.reducers.samples:_Points",
            name,
            lambda original, self, dtype: np.abs(original(self, dtype)),
        )


@SAFETY("te/reducers/samples.py", tests="te/test_reducer_laws.py")
def samples_without_edges(patch: Patch) -> None:
    """Reducers are tried on small numbers, which never overflow or saturate."""

    def wrong(original, self, dtype):
        found = original(self, dtype)
        return np.clip(found, 0 if dtype.startswith("u") else -5, 5).astype(found.dtype)

    for name in ("_integers", "_floats"):
        patch.method("te.reducers.samples:_Points", name, wrong)


@SAFETY("schedule/legality/reducers.py", tests="te/test_reducer_laws.py")
def grouping_is_enough(patch: Patch) -> None:
    """Values of a reducer may change places where they may be grouped."""
    patch.function("te.reducers.laws:order_violation", lambda original, *args, **options: None)


# -- comparison, states and stored code --------------------------------------------------------


@SAFETY(EQUALITY, tests="measurement/test_equality.py")
def integers_as_floats(patch: Patch) -> None:
    """Integers are compared in float64, where different large ones become equal."""

    def wrong(original, got, expected, bound):
        if got.dtype.kind not in "iu":
            return original(got, expected, bound)
        return Differences(got.astype(np.float64) != expected.astype(np.float64), 0.0)

    patch.function("measurement.equality:differences", wrong)


@SAFETY(EQUALITY, tests="measurement/test_equality.py")
def infinities_are_the_same(patch: Patch) -> None:
    """A result of the other infinity is right."""

    def wrong(original, got, expected, bound):
        if got.dtype.kind in "biu":
            return original(got, expected, bound)
        found = original(got, expected, bound)
        both = np.isinf(got.astype(np.float64)) & np.isinf(expected)
        return Differences(found.wrong & ~both, found.worst)

    patch.function("measurement.equality:differences", wrong)


@SAFETY(EQUALITY, tests="measurement/test_equality.py")
def last_element_not_compared(patch: Patch) -> None:
    """The last element of a result is not looked at."""

    def wrong(original, got, expected, bound):
        found = original(got, expected, bound)
        wrong = np.array(found.wrong)
        if wrong.size:
            wrong.flat[-1] = False
        return Differences(wrong, found.worst)

    patch.function("measurement.equality:differences", wrong)


@SAFETY("schedule/state.py", tests="schedule/test_state_fields.py")
def loops_are_notes(patch: Patch) -> None:
    """A step that changes only how loops run is not checked."""
    checked = [name for name in _fields() if name not in {*NOTES, "kinds"}]
    patch.value("schedule.state", "_CHECKED", tuple(checked))


@SAFETY("schedule/state.py", tests="schedule/test_state_fields.py")
def attachments_are_notes(patch: Patch) -> None:
    """A step that changes only where a stage is computed is not checked."""
    checked = [name for name in _fields() if name not in {*NOTES, "attachment"}]
    patch.value("schedule.state", "_CHECKED", tuple(checked))


def _fields() -> tuple[str, ...]:
    from dlcompiler.schedule import state

    return tuple(state.StageState.__dataclass_fields__)


@SAFETY("runtime/object_cache.py", tests="runtime/test_object_cache.py")
def damaged_objects_linked(patch: Patch) -> None:
    """An object of the cache is linked whatever its digest is."""

    def wrong(original, key, data):
        import hashlib

        from dlcompiler.runtime.object_cache import _MAGIC

        _, _, body = data[len(_MAGIC) :].partition(b"\n")
        digest = hashlib.sha256(body).hexdigest().encode()
        return original(key, _MAGIC + digest + b"\n" + body)

    patch.function("runtime.object_cache:_decoded", wrong)
