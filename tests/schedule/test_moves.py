"""`moves`: finite, each illegal one with its reason, each legal one applicable."""

import dataclasses

import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError, TargetError
from dlcompiler.ir import THREADS
from dlcompiler.schedule import LEGAL, Illegal, create_schedule
from dlcompiler.schedule.moves.enumeration import divisors, moves_of
from dlcompiler.target import REGISTRY, resolve


def apply(schedule, move):
    """Apply a move with the first suggested value of each parameter."""
    chosen = {d.parameter: (d.suggested or (2,))[0] for d in move.domains}
    return schedule.apply(move.primitive, move.stage, {**move.args, **chosen})


def test_the_moves_of_a_stage(matmul, golden):
    golden("matmul", "\n".join(repr(move) for move in matmul.s.moves(matmul.C)))


def test_every_stage_by_default(chain):
    assert {move.stage for move in chain.s.moves()} == {"A", "P", "Q", "D"}
    assert {move.primitive for move in chain.s.moves(chain.A)} == {"cache_read"}


@pytest.mark.parametrize("key", ["stage", "tensor", "operation"])
def test_a_stage_is_named_by_its_handle_or_tensor(chain, key):
    value = {"stage": chain.s[chain.Q], "tensor": chain.Q, "operation": chain.Q.op}[key]
    assert {move.stage for move in chain.s.moves(value)} == {"Q"}


def states(expression):
    """Yield schedules in different states."""
    s = expression.s
    yield s
    for move in s.legal_moves():
        apply(s, move)
        yield s
        s.undo()


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["matmul", "chain"])
def test_verdicts_are_true_and_explained(request, name):
    for s in states(request.getfixturevalue(name)):
        before = s.state
        for move in s.moves():
            if move.verdict:
                apply(s, move)
                s.undo()
                continue
            assert isinstance(move.verdict, Illegal)
            assert move.verdict.kind in ("structural", "semantic", "limit")
            assert move.verdict.reason
            with pytest.raises(ScheduleError, match=r"\w"):
                apply(s, move)
        assert s.state is before


def test_legal_moves_are_those_with_a_verdict_that_holds(matmul):
    legal = matmul.s.legal_moves(matmul.C)
    assert [repr(move) for move in legal] == [
        repr(move) for move in matmul.s.moves(matmul.C) if move.verdict
    ]


def test_no_stage_is_left_out_while_an_obligation_is_open(chain):
    d = chain.D.op.axis[0]
    chain.s[chain.Q].compute_at(chain.s[chain.D], d)
    chain.s[chain.D].split(d, 4)
    assert {move.stage for move in chain.s.moves()} == {"A", "P", "Q", "D"}


@pytest.mark.parametrize(
    ("extent", "expected"),
    [
        (1, ()),
        (2, ()),
        (3, (2,)),
        (4, (2,)),
        (7, (2, 4)),
        (12, (2, 3, 4, 6)),
        (36, (2, 3, 4, 6, 9, 12, 18)),
        (0, ()),
    ],
)
def test_divisors(extent, expected):
    assert divisors(extent) == expected


def test_huge_extents_have_finite_suggestions():
    A = te.placeholder((2**40,), name="A")
    C = te.compute((2**40,), lambda i: A[i] + 1.0, name="C")
    s = create_schedule(C.op)
    assert all(move.verdict or move.verdict.reason for move in s.moves())
    assert divisors(999_999_937) == (2, 4, 8)


def test_only_wanted_moves_are_checked(monkeypatch):
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] + 1.0, name="B")
    s = create_schedule(B.op)
    checked = []
    attempt = s.attempt
    monkeypatch.setattr(s, "attempt", lambda *a: checked.append(a[0]) or attempt(*a))
    found = list(moves_of(s, "B", lambda name, args: name == "unroll"))
    assert [move.targets for move in found] == [("B.i",), ("B.j",)]
    assert checked == ["unroll", "unroll"]


# -- for a target --------------------------------------------------------------------------------


def about(moves, primitive):
    """The targets of the moves of a primitive, each with its verdict."""
    return {move.targets: move.verdict for move in moves if move.primitive == primitive}


def product(n=64):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return create_schedule(C.op), A, C


def vector(n):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    return create_schedule(B.op), B


@pytest.mark.parametrize("target", [None, "x86-64-avx2", "cortex-a53"])
def test_a_cpu_has_no_thread_axes(matmul, target):
    moves = matmul.s.moves(matmul.C, target)
    assert [repr(move) for move in moves] == [repr(move) for move in matmul.s.moves(matmul.C)]
    assert "bind" not in {move.primitive for move in moves}


@pytest.mark.parametrize("target", ["v100", resolve("gpu")])
def test_a_gpu_has_thread_axes_for_every_loop(target):
    s, _, C = product()
    binds = about(s.moves(C, target), "bind")
    assert set(binds) == {(f"C.{name}", thread) for name in "ijk" for thread in THREADS}
    assert binds["C.i", "blockIdx.y"] is LEGAL
    assert "reduction axis" in binds["C.k", "blockIdx.x"].reason


def test_a_gpu_has_shared_memory():
    s, A, C = product()
    assert set(about(s.moves(A, "v100"), "cache_read")) == {
        ("A", scope, "C") for scope in ("global", "shared", "warp", "local")
    }
    assert ("C", "shared") in about(s.legal_moves(C, "v100"), "cache_write")
    CL = s.cache_write(C, "local")
    assert set(about(s.moves(CL, "v100"), "set_scope")) == {
        ("C.local", scope) for scope in ("global", "shared", "warp", "local")
    }


def test_what_a_gpu_has_not_is_refused_by_a_limit():
    s, _, C = product()
    verdict = about(s.moves(C, "v100"), "parallel")["C.i",]
    assert (verdict.kind, verdict.reason) == ("limit", "v100 has no parallel loops")
    assert verdict.hint == "bind the loop to blockIdx.x or threadIdx.x"
    assert not about(s.legal_moves(C, "v100"), "parallel")
    assert s.can("parallel", C.op.axis[0]), "the schedule itself knows no target"


@pytest.mark.parametrize(
    ("thread", "extent", "reason"),
    [
        ("threadIdx.x", 1025, "v100 has at most 1,024 iterations on threadIdx.x"),
        ("threadIdx.z", 65, "v100 has at most 64 iterations on threadIdx.z"),
        ("blockIdx.y", 65_536, "v100 has at most 65,535 iterations on blockIdx.y"),
        ("vthread", 9, "v100 has at most 8 iterations on vthread"),
    ],
)
def test_the_limits_of_a_thread_axis(thread, extent, reason):
    for size, expected in ((extent - 1, ""), (extent, reason)):
        s, B = vector(size)
        verdict = about(s.moves(B, "v100"), "bind")["B.i", thread]
        assert (verdict.reason if isinstance(verdict, Illegal) else "") == expected


def test_a_block_has_so_many_threads():
    s, _, C = product()
    s[C].bind(s[C].op.axis[0], te.thread_axis("threadIdx.y"))
    verdict = about(s.moves(C, "v100"), "bind")["C.j", "threadIdx.x"]
    assert verdict.reason == "v100 has at most 1,024 threads in a block"
    assert verdict.got == "4,096: 64 × 64"
    assert about(s.moves(C, "v100"), "bind")["C.j", "blockIdx.x"] is LEGAL


def test_a_thread_stores_so_many_bytes_at_once():
    s, _, C = product()
    verdict = about(s.moves(C, "v100"), "vectorize")["C.j",]
    assert verdict.reason == "v100 stores at most 16 bytes at once"
    assert verdict.got == "256: 64 elements of 4 bytes"
    assert verdict.hint == "split the loop by 4, and vectorize the inner part"
    s[C].split(C.op.axis[1], 4)
    assert about(s.moves(C, "v100"), "vectorize")["C.j.inner",]


def test_virtual_threads_count_together():
    s, _, C = product()
    i, j = s[C].op.axis
    s[C].bind(s[C].split(i, nparts=4)[0], te.thread_axis("vthread"))
    s[C].split(j, nparts=4)
    verdict = about(s.moves(C, "v100"), "bind")["C.j.outer", "vthread"]
    assert verdict.got == "16"


def test_a_loop_of_unknown_extent_has_no_limit():
    s, B = vector(te.var("n"))
    assert about(s.moves(B, "v100"), "bind")["B.i", "threadIdx.x"]


def test_an_unknown_target_is_refused(matmul):
    with pytest.raises(TargetError, match="no target has this name"):
        matmul.s.moves(matmul.C, "v10")


@pytest.mark.parametrize("target", [None, "cpu", "c", "gpu", "bare"])
def test_intrinsics_are_offered_where_the_target_emits_them(target, monkeypatch):
    bare = dataclasses.replace(resolve("x86-64-avx2"), name="bare", emits=frozenset({"dot4"}))
    monkeypatch.setitem(REGISTRY, "bare", bare)
    A, B = te.placeholder((6, 8), name="A"), te.placeholder((8, 16), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((6, 16), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    found = moves_of(create_schedule(C.op), "C", target=target and resolve(target))
    names = [move.args["intrin"] for move in found if move.primitive == "tensorize"]
    assert ("gemm_f32_6x16x8" in names) is (target in (None, "cpu"))
