"""Footprints: known ones, and those of random schedules against running the program."""

import random

import pytest

from dlcompiler import te
from dlcompiler.analysis.footprint import ProgramFootprint
from dlcompiler.analysis.operations import count_stores
from dlcompiler.errors import ScheduleError
from dlcompiler.pipeline import lower
from dlcompiler.pipeline.checks import default_args
from dlcompiler.schedule import create_schedule
from tests.analysis.touching import DataError, TooLongError, Touching
from tests.fuzz.choices import Choices
from tests.fuzz.templates import TEMPLATES, Sizes
from tests.fuzz.walks import Walk

SEEDS, AT_ONCE = 120, 30


def footprint_of(schedule):
    return ProgramFootprint(lower(schedule, default_args(schedule), simple_mode=True))


def counts(footprint, loop, of="one"):
    """Return the elements that a loop touches, by the name of the buffer."""
    (nest,) = [nest for nest in footprint.nests if nest.loop.var.name == loop]
    return {b.name: item.elements for b, item in getattr(footprint, of)(nest).items()}


def matmul(n=64, dtype="float32"):
    A, B = te.placeholder((n, n), dtype, name="A"), te.placeholder((n, n), dtype, name="B")
    k = te.reduce_axis((0, n), name="k")
    return te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")


def random_schedule(seed):
    rng = random.Random(seed)
    made = TEMPLATES[rng.choice(list(TEMPLATES))](Sizes(Choices(rng)))
    outputs = made if isinstance(made, tuple) else (made,)
    schedule = create_schedule([output.op for output in outputs])
    Walk(rng, schedule).run(rng.randint(0, 9))
    return schedule


def random_program(seed):
    schedule = random_schedule(seed)
    return lower(schedule, default_args(schedule), simple_mode=True)


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_random_schedules_touch_what_is_counted(first):
    exact = total = 0
    for seed in range(first, first + AT_ONCE):
        func = random_program(seed)
        try:
            seen = Touching(func)
        except (DataError, TooLongError):
            continue
        footprint = ProgramFootprint(func)
        found = [
            (item, really[nest.loop.statement][buffer])
            for nest in footprint.nests
            for items, really in (
                (footprint.one(nest), seen.one),
                (footprint.whole(nest), seen.whole),
            )
            for buffer, item in items.items()
        ]
        found += [
            (item, len(seen.all[buffer])) for buffer, item in footprint.one(footprint.root).items()
        ]
        for item, really in found:
            assert item.elements >= really, f"seed {seed}: {item} of {really}"
            assert item.elements == really or not item.is_exact, f"seed {seed}: {item} of {really}"
            assert item.lines <= item.elements
        for nest in footprint.nests:
            for buffer, item in footprint.one(nest).items():
                assert item.lines >= seen.lines[nest.loop.statement][buffer], f"seed {seed}: {item}"
        for count in count_stores(footprint):
            really = seen.points[count.store]
            assert count.times >= really, f"seed {seed}: {count}"
            assert count.times == really or not count.is_exact, f"seed {seed}: {count}"
        exact += sum(item.is_exact for item, _ in found)
        total += len(found)
    assert exact > 0.9 * total


def test_a_tile_of_a_matrix_product():
    C = matmul()
    s = create_schedule(C.op)
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    io, jo, ii, ji = s[C].tile(i, j, 8, 16)
    s[C].reorder(io, jo, k, ii, ji)
    footprint = footprint_of(s)
    assert counts(footprint, "j.outer") == {"A": 8 * 64, "B": 64 * 16, "C": 8 * 16}
    assert counts(footprint, "k") == {"A": 8, "B": 16, "C": 8 * 16}
    assert counts(footprint, "i.outer", "whole") == {"A": 64 * 64, "B": 64 * 64, "C": 64 * 64}


@pytest.mark.parametrize("factor", [16, 64, 128])
def test_fused_loops_are_counted_as_what_they_were(factor):
    C = matmul()
    s = create_schedule(C.op)
    s[C].split(s[C].fuse(*C.op.axis), factor=factor)
    footprint = footprint_of(s)
    assert all(f.is_exact for nest in footprint.nests for f in footprint.one(nest).values())
    rows = max(factor // 64, 1)
    columns = min(factor, 64)
    assert counts(footprint, "i.j.fused.outer") == {
        "A": rows * 64, "B": 64 * columns, "C": factor,
    }  # fmt: skip


def test_tiles_whose_loops_are_fused():
    C = matmul()
    s = create_schedule(C.op)
    io, jo, ii, ji = s[C].tile(*C.op.axis, 8, 16)
    s[C].reorder(io, jo, *C.op.reduce_axis, ii, ji)
    s[C].fuse(io, jo)
    footprint = footprint_of(s)
    expected = {"A": 8 * 64, "B": 64 * 16, "C": 8 * 16}
    assert counts(footprint, "i.outer.j.outer.fused") == expected


def test_fused_axes_that_do_not_divide_are_bounded():
    C = matmul()
    s = create_schedule(C.op)
    s[C].split(s[C].fuse(*C.op.axis), factor=48)
    touched = counts(footprint_of(s), "i.j.fused.outer")
    assert 48 <= touched["C"] <= 2 * 64
    assert touched["A"] <= 2 * 48 * 64


def test_windows_that_overlap_count_once():
    X = te.placeholder((20, 20), name="X")
    r, c = te.reduce_axis((0, 3), name="r"), te.reduce_axis((0, 3), name="c")
    Y = te.compute((18, 18), lambda i, j: te.sum(X[i + r, j + c], axis=[r, c]), name="Y")
    footprint = footprint_of(create_schedule(Y.op))
    assert counts(footprint, "j") == {"X": 9, "Y": 1}
    assert counts(footprint, "i") == {"X": 3 * 20, "Y": 18}
    assert counts(footprint, "i", "whole") == {"X": 400, "Y": 18 * 18}


def test_a_stencil_reads_the_union_of_its_points():
    X = te.placeholder((10, 10), name="X")
    Y = te.compute(
        (8, 8),
        lambda i, j: X[i, j + 1] + X[i + 2, j + 1] + X[i + 1, j] + X[i + 1, j + 2],
        name="Y",
    )
    footprint = footprint_of(create_schedule(Y.op))
    assert counts(footprint, "j")["X"] == 4
    assert counts(footprint, "i")["X"] == 8 + 8 + 10
    assert counts(footprint, "i", "whole")["X"] == 100 - 4


def test_a_guarded_tail_touches_what_is_there():
    A = te.placeholder((20,), name="A")
    B = te.compute((20,), lambda i: A[i] * 2.0, name="B")
    s = create_schedule(B.op)
    s[B].split(B.op.axis[0], factor=8)
    footprint = footprint_of(s)
    assert counts(footprint, "i.outer") == {"A": 8, "B": 8}
    assert counts(footprint, "i.outer", "whole") == {"A": 20, "B": 20}


def test_lines_follow_the_stride():
    A = te.placeholder((64, 64), name="A")
    B = te.compute((64, 64), lambda i, j: A[j, i], name="B")
    footprint = footprint_of(create_schedule(B.op))
    inner = next(nest for nest in footprint.nests if nest.loop.var.name == "j")
    lines = {b.name: item.lines for b, item in footprint.whole(inner).items()}
    assert lines == {"A": 64, "B": 4}


def test_rows_that_are_no_whole_lines():
    A = te.placeholder((30, 30), name="A")
    B = te.compute((30, 30), lambda i, j: A[i, j], name="B")
    footprint = footprint_of(create_schedule(B.op))
    (whole,) = [f for b, f in footprint.one(footprint.root).items() if b.name == "A"]
    assert whole.lines == -(-30 * 30 * 4 // 64)


def test_sizes_that_are_not_known_are_refused():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i], name="B")
    with pytest.raises(ScheduleError, match="known only when the program runs"):
        footprint_of(create_schedule(B.op))
