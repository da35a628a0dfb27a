"""cache_read: the nests it makes, who reads the copy, and what it refuses."""

import pytest

from dlcompiler import te
from dlcompiler.schedule import Illegal, create_schedule


def test_copies_an_input(matmul, nest, golden, computes):
    cached = matmul.s.cache_read(matmul.A, "local", [matmul.C])
    assert (cached.name, matmul.s[cached].scope) == ("A.local", "local")
    golden("root", nest(matmul))
    computes(matmul.s)


def test_holds_what_is_read_where_it_is_attached(matmul, nest, golden, computes):
    s, C = matmul.s, matmul.C
    io, _ = s[C].split(matmul.i, 3)
    ko, _ = s[C].split(matmul.k, 5)
    s[C].reorder(io, ko)
    AA, BB = (s.cache_read(tensor, "local", C.op) for tensor in (matmul.A, matmul.B))
    s[AA].compute_at(s[C], ko)
    s[BB].compute_at(s[C], ko)
    s[AA].vectorize(s[AA].op.axis[1])
    golden("attached", nest(matmul))
    computes(s)


def test_only_the_readers_given_read_the_copy(chain, nest, golden, computes):
    A = te.placeholder((7,), name="A")
    P = te.compute((7,), lambda i: A[i] * 2.0, name="P")
    D = te.compute((7,), lambda i: A[i] + P[i], name="D")
    s = create_schedule(D.op)
    s[P].compute_inline()
    cached = s.cache_read(A, "global", [P])
    assert s[P].op.input_tensors == (cached,)
    assert s[D].op.input_tensors == (A, P)
    chain.s, chain.args = s, [A, D]
    golden("inlined_reader", nest(chain))
    computes(s)


def test_a_stage_read_through_two_copies(chain, nest, golden, computes):
    first = chain.s.cache_read(chain.P, "local", [chain.Q])
    second = chain.s.cache_read(chain.P, "local", chain.s[first].op)
    assert [chain.s[x].name for x in (first, second)] == ["P.local", "P.local_1"]
    for cached in (first, second):
        chain.s[cached].compute_at(chain.s[chain.Q], chain.Q.op.axis[0])
    golden("twice", nest(chain))
    computes(chain.s)


def test_one_of_several_outputs(computes):
    A = te.placeholder((5, 3), name="A")
    P, Q = te.compute((5, 3), lambda i, j: (A[i, j] + 1.0, A[i, j] * 2.0), name="P")
    D = te.compute((5, 3), lambda i, j: P[i, j] * Q[i, j], name="D")
    s = create_schedule(D.op)
    cached = s.cache_read(Q, "local", [D])
    assert s[cached].name == "P.v1.local"
    s[cached].compute_at(s[D], D.op.axis[0])
    computes(s)


def test_a_reduction_reads_a_copy_in_its_condition(computes):
    A = te.placeholder((7,), "int32", name="A")
    k = te.reduce_axis((0, 7), name="k")
    C = te.compute((), lambda: te.sum(A[k], axis=k, where=A[k] > 0, init=3), name="C")
    s = create_schedule(C.op)
    cached = s.cache_read(A, "local", [C])
    s[cached].compute_at(s[C], k)
    computes(s)


@pytest.mark.parametrize(
    ("readers", "text"),
    [
        (
            [],
            "cache_read P: no reader is given\n  hint      the readers are: Q",
        ),
        (
            ["Q", "Q"],
            "cache_read P: each reader may be given once\n  got       Q, Q",
        ),
        (
            ["D"],
            "cache_read P: D does not read P\n  hint      the readers are: Q",
        ),
    ],
)
def test_refuses_readers(chain, refusal, readers, text):
    tensors = [getattr(chain, name) for name in readers]
    assert refusal(chain.s.cache_read, chain.P, "local", tensors) == text


def test_refuses_an_output_that_nothing_reads(chain, refusal):
    assert refusal(chain.s.cache_read, chain.D, "local", [chain.Q]) == (
        "cache_read D: Q does not read D\n  hint      no stage reads D"
    )


def test_refuses_an_unknown_scope(chain, refusal):
    assert refusal(chain.s.cache_read, chain.A, "sharde", [chain.P]) == (
        "cache_read A: no such memory scope\n"
        "  got       'sharde'\n"
        "  hint      known scopes: global, local, shared, warp"
    )


def test_refuses_what_is_no_reader(chain, refusal):
    assert refusal(chain.s.cache_read, chain.A, "local", 3) == (
        "cache_read A: readers must be a tuple of stages\n  got       (3,)"
    )
    verdict = chain.s.can("cache_read", chain.A, "local", ["Z"])
    assert verdict == Illegal("structural", "no such stage", "there are A, P, Q, D", "'Z'")
    verdict = chain.s.can("cache_read", chain.A, "local", [chain.P], output=1)
    assert verdict.reason == "A has no such output"


def test_a_copy_of_what_is_computed_inside_a_loop_must_go_there(chain, computes):
    s, i = chain.s, chain.Q.op.axis[0]
    s[chain.P].compute_at(s[chain.Q], i)
    assert s.can("cache_read", chain.P, "local", [chain.Q]).obligation.startswith(
        "P is computed at Q.i, and its reader P.local is not there yet"
    )
    cached = s.cache_read(chain.P, "local", [chain.Q])
    s[cached].compute_at(s[chain.Q], i)
    computes(s)
