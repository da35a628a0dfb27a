"""`can`: the verdict of a step without taking it."""

from dlcompiler.schedule import LEGAL, Illegal
from dlcompiler.schedule.primitives import REGISTRY


def test_legal_is_true_and_illegal_is_false(matmul):
    assert matmul.s.can("vectorize", matmul.j) == LEGAL
    assert matmul.s.can("vectorize", matmul.j)
    assert not matmul.s.can("vectorize", matmul.k)


def test_asking_changes_nothing(matmul):
    matmul.s.can("split", matmul.i, 2)
    assert len(matmul.s.trace) == 0


def test_takes_the_arguments_of_the_call(chain):
    s, d = chain.s, chain.D.op.axis[0]
    assert s.can("split", d, 4)
    assert s.can("split", d, nparts=4)
    assert s.can("split", s[chain.D], d, factor=4)
    assert s.can("compute_at", s[chain.Q], s[chain.D], d)
    assert s.can("compute_at", chain.Q, chain.D, d)
    assert s.can("compute_inline", chain.Q)
    assert s.can("compute_root", s[chain.Q])
    assert s.can("cache_write", chain.D, "local")


def test_takes_any_number_of_axes(matmul):
    assert matmul.s.can("fuse", matmul.i, matmul.j)
    assert matmul.s.can("reorder", matmul.k, matmul.j, matmul.i)
    assert matmul.s.can("tile", matmul.i, matmul.j, 2, 3)


def test_says_why_not(matmul):
    verdict = matmul.s.can("split", matmul.i, 0)
    assert verdict == Illegal("structural", "factor must be at least 1", got="0")
    assert matmul.s.can("parallel", matmul.k).kind == "semantic"
    assert matmul.s.can("cache_write", matmul.C, "attic").kind == "limit"


def test_finds_the_owner_of_an_axis_that_moved(matmul):
    cached = matmul.s.cache_write(matmul.C, "local")
    assert matmul.s.can("unroll", matmul.k)
    assert matmul.s.can("unroll", matmul.s[cached].op.axis[0])


def test_an_argument_that_is_missing_is_illegal(matmul):
    assert matmul.s.can("tile", matmul.i, matmul.j) == Illegal(
        "structural", "x_factor and y_factor must be given"
    )
    assert matmul.s.can("vectorize", matmul.s[matmul.C]).reason == "axis must be given"


def test_without_numbers_the_reason_is_what_no_number_mends(matmul):
    s, i, j = matmul.s, matmul.i, matmul.j
    asked = (("split", (i,)), ("tile", (i, j)), ("fuse", (i, j)))
    assert s.can("split", i).reason == "exactly one of factor and nparts must be given"
    s[matmul.C].parallel(i)
    assert {s.can(name, *args).reason for name, args in asked} == {
        "the loop is parallel already, and would lose that"
    }
    assert s.can("storage_align", matmul.C, i).reason.startswith("C is an output")
    assert s.can("split", i, factor=0).reason != s.can("split", j, factor=0).reason


def test_an_argument_that_does_not_exist_is_illegal(matmul):
    assert matmul.s.can("vectorize", matmul.j, lanes=4) == Illegal(
        "structural", "no argument is called lanes", "the arguments are: axis"
    )


def test_refuses_an_unknown_primitive(matmul, refusal):
    known = ", ".join(sorted(REGISTRY))
    assert refusal(matmul.s.can, "fuze", matmul.k) == (
        f"can 'fuze': no such primitive\n  expected  {known}"
    )


def test_refuses_a_call_about_nothing(matmul, refusal):
    assert refusal(matmul.s.can, "split") == "can 'split': no stage or axis given"


def test_refuses_too_many_arguments(matmul, refusal):
    assert refusal(matmul.s.can, "vectorize", matmul.j, 4) == (
        "can 'vectorize': too many arguments\n"
        "  got       (Axis(j, extent=6, data), 4)\n"
        "  expected  axis"
    )


def test_refuses_a_subject_that_is_neither_stage_nor_axis(matmul, refusal):
    assert refusal(matmul.s.can, "vectorize", 3) == (
        "can 'vectorize': the first argument is neither a stage nor an axis\n"
        "  got       3\n"
        "  expected  s[C], C or an axis of the schedule"
    )


def test_a_host_that_is_no_stage_is_illegal(chain):
    verdict = chain.s.can("compute_at", chain.s[chain.Q], 5, chain.D.op.axis[0])
    assert verdict == Illegal("structural", "no such stage", "there are A, P, Q, D", "5")
