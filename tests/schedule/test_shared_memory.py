"""Memory that the threads of a block share: who computes what, barriers, what is pending."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import ProgramError, ScheduleError
from dlcompiler.ir import (
    Allocate,
    Barrier,
    For,
    If,
    PrimFunc,
    Seq,
    Store,
    compare,
    rewrite,
    walk,
)
from dlcompiler.measurement.verification import verify
from dlcompiler.pipeline import build, lower
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.trace import Trace
from dlcompiler.simulate import interpret
from tests.schedule.test_device_programs import agrees

TAGS = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")


def product(n, m, depth):
    A, B = te.placeholder((n, depth), name="A"), te.placeholder((depth, m), name="B")
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return [A, B, C]


def tiled(args, *, threads=4, each=2, step=4, bind_loads=True):
    """Return the schedule that GPU tutorials teach: blocks, threads, tiles in shared memory."""
    A, B, C = args
    s = create_schedule(C.op)
    CL = s.cache_write(C, "local")
    AA, BB = (s.cache_read(tensor, "shared", [CL]) for tensor in (A, B))
    i, j = s[C].op.axis
    by, i = s[C].split(i, threads * each)
    bx, j = s[C].split(j, threads * each)
    ty, i = s[C].split(i, each)
    tx, j = s[C].split(j, each)
    s[C].reorder(by, bx, ty, tx, i, j)
    for loop, tag in zip((by, bx, ty, tx), TAGS, strict=True):
        s[C].bind(loop, te.thread_axis(tag))
    s[CL].compute_at(s[C], tx)
    ko, ki = s[CL].split(s[CL].op.reduce_axis[0], step)
    s[CL].reorder(ko, ki, *s[CL].op.axis)
    for load in (AA, BB):
        s[load].compute_at(s[CL], ko)
        if bind_loads:
            _, inner = s[load].split(s[load].fuse(*s[load].op.axis), threads * threads)
            for loop, tag in zip(s[load].split(inner, threads), TAGS[2:], strict=True):
                s[load].bind(loop, te.thread_axis(tag))
    return s


def run(func, args, seed=0, order=None):
    generator = np.random.default_rng(seed)
    arrays = [generator.integers(-4, 5, t.shape).astype(t.dtype) for t in args]
    interpret(func, arrays, order=order)
    return arrays


def is_right(func, args, order=None):
    a, b, c = run(func, args, order=order)
    return bool((c == a @ b).all())


def test_the_program_of_a_product(golden):
    args = product(16, 16, 8)
    golden("product", str(lower(tiled(args), args)))


@pytest.mark.parametrize("shape", [(8, 8, 8), (16, 8, 4), (9, 17, 5), (1, 1, 1), (7, 23, 3)])
@pytest.mark.parametrize("sizes", [(4, 2, 4), (2, 3, 2), (3, 1, 8)])
def test_products_of_awkward_sizes(shape, sizes):
    threads, each, step = sizes
    args = product(*shape)
    assert is_right(lower(tiled(args, threads=threads, each=each, step=step), args), args)


@pytest.mark.parametrize("shape", [(16, 16, 8), (9, 13, 5)])
def test_virtual_threads_share_a_tile_with_the_others(shape, golden):
    args = A, B, C = product(*shape)
    s = create_schedule(C.op)
    CL = s.cache_write(C, "local")
    caches = [s.cache_read(tensor, "shared", [CL]) for tensor in (A, B)]
    i, j = s[C].op.axis
    by, i = s[C].split(i, 8)
    bx, j = s[C].split(j, 8)
    vy, ty = s[C].split(i, nparts=2)
    vx, tx = s[C].split(j, nparts=2)
    s[C].reorder(by, bx, vy, vx, ty, tx)
    tags = (*TAGS[:2], "vthread", "vthread", *TAGS[2:])
    for loop, tag in zip((by, bx, vy, vx, ty, tx), tags, strict=True):
        s[C].bind(loop, te.thread_axis(tag))
    s[CL].compute_at(s[C], tx)
    ko, ki = s[CL].split(s[CL].op.reduce_axis[0], 4)
    s[CL].reorder(ko, ki, *s[CL].op.axis)
    for cache in caches:
        s[cache].compute_at(s[CL], ko)
        loop = s[cache].fuse(*s[cache].op.axis)
        for tag in reversed(TAGS[2:]):
            loop, inner = s[cache].split(loop, 4)
            s[cache].bind(inner, te.thread_axis(tag))
    func = lower(s, list(args))
    if shape == (16, 16, 8):
        golden("virtual_threads", str(func))
    assert is_right(func, args)
    assert is_right(func, args, order=4)
    injected = lower(s, list(args), target="gpu")
    assert not any(isinstance(n, For) and n.kind == "vthread" for n in walk(injected.body))
    assert is_right(injected, args)
    assert is_right(injected, args, order=5)


def test_loads_that_are_not_shared_out_are_one_threads_work():
    args = product(9, 8, 5)
    func = lower(tiled(args, bind_loads=False), args)
    assert is_right(func, args)
    stores = [n for n in walk(func.body) if isinstance(n, Store) and n.buffer.scope == "shared"]
    assert len(stores) == 2


def test_a_stage_with_fewer_iterations_than_threads_is_guarded():
    A = te.placeholder((64,), name="A")
    B = te.compute((61,), lambda i: A[i] + A[i + 1] + A[i + 3], name="B")
    s = create_schedule(B.op)
    AA = s.cache_read(A, "shared", [B])
    outer, inner = s[B].split(B.op.axis[0], 16)
    s[B].bind(outer, te.thread_axis("blockIdx.x"))
    s[B].bind(inner, te.thread_axis("threadIdx.x"))
    s[AA].compute_at(s[B], inner)
    first, _ = s[AA].split(AA.op.axis[0], nparts=10)
    s[AA].bind(first, te.thread_axis("threadIdx.x"))
    func = lower(s, [A, B])
    assert "threadIdx.x(16)" in str(func)
    a, b = run(func, [A, B])
    assert (b == a[:61] + a[1:62] + a[3:64]).all()


def test_stages_in_shared_memory_that_read_each_other_meet_between():
    A = te.placeholder((32,), name="A")
    P = te.compute((32,), lambda i: A[i] * 2.0, name="P")
    Q = te.compute((32,), lambda i: P[(i + 5) % 32] + 1.0, name="Q")
    R = te.compute((32,), lambda i: Q[31 - i], name="R")
    s = create_schedule(R.op)
    (r,) = R.op.axis
    s[R].bind(r, te.thread_axis("threadIdx.x"))
    for stage in (Q, P):
        s[stage].set_scope("shared")
        s[stage].compute_at(s[R], r)
        s[stage].bind(stage.op.axis[0], te.thread_axis("threadIdx.x"))
    func = lower(s, [A, R])
    assert sum(isinstance(node, Barrier) for node in walk(func.body)) == 3
    a, result = run(func, [A, R])
    assert (result == (2 * a[(np.arange(31, -1, -1) + 5) % 32] + 1)).all()


@pytest.mark.parametrize("between", ["inlined", "attached"])
def test_threads_meet_before_what_is_shared_is_read_through_another_stage(between):
    A = te.placeholder((32,), name="A")
    P = te.compute((32,), lambda i: A[i] * 2.0, name="P")
    Q = te.compute((32,), lambda i: P[31 - i] + 1.0, name="Q")
    R = te.compute((32,), lambda i: Q[i] + 2.0, name="R")
    C = te.compute((32,), lambda i: R[i] + 3.0, name="C")
    s = create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    for stage in (R, P):
        s[stage].compute_at(s[C], C.op.axis[0])
    s[P].set_scope("shared")
    s[P].bind(P.op.axis[0], te.thread_axis("threadIdx.x"))
    if between == "inlined":
        s[Q].compute_inline()
    else:
        s[Q].compute_at(s[R], R.op.axis[0])
    a, result = run(lower(s, [A, C]), [A, C])
    assert (result == 2 * a[::-1] + 6).all()


def test_a_trace_is_replayed_on_another_shape():
    args = product(16, 16, 8)
    other = product(24, 16, 7)
    text = tiled(args).trace.to_json()
    s = create_schedule(other[2].op)
    Trace.from_json(text).replay(s)
    assert is_right(lower(s, other), other)


def test_a_block_of_one_thread():
    args = product(1, 1, 3)
    arrays = [np.full(t.shape, 2, t.dtype) for t in args]
    build(tiled(args, threads=1, bind_loads=False), args, "gpu")(*arrays)
    assert arrays[2].item() == 12


def test_verify_runs_it_and_interprets_it():
    args = product(9, 8, 5)
    assert verify(tiled(args), args, target="gpu").oracles == ("numpy", "interpreter")
    large = product(256, 256, 256)
    first, oracle = verify(tiled(large, each=4), large, target="gpu").oracles
    assert first == "numpy"
    assert oracle.startswith("interpreter on (")


# -- what is owed ------------------------------------------------------------------------------


def test_shared_memory_needs_threads(chain):
    s = chain.s
    s[chain.Q].set_scope("shared")
    with pytest.raises(ScheduleError, match="Q is in shared memory, and computed outside"):
        lower(s, chain.args)
    s[chain.Q].compute_at(s[chain.D], s[chain.D].op.axis[0])
    s[chain.D].bind(s[chain.D].op.axis[0], te.thread_axis("threadIdx.x"))
    lower(s, chain.args)


def test_threads_of_a_load_must_be_those_of_the_block(chain):
    s = chain.s
    (d,) = s[chain.D].op.axis
    s[chain.Q].set_scope("shared")
    s[chain.Q].compute_at(s[chain.D], d)
    s[chain.Q].bind(s[chain.Q].op.axis[0], te.thread_axis("threadIdx.y"))
    s[chain.D].bind(d, te.thread_axis("threadIdx.x"))
    with pytest.raises(ScheduleError) as caught:
        lower(s, chain.args)
    assert str(caught.value).splitlines()[:1] == [
        "lower main: Q.i is bound to threadIdx.y, and no loop around Q is"
    ]


def test_a_load_cannot_have_more_iterations_than_threads(chain):
    s = chain.s
    outer, inner = s[chain.D].split(s[chain.D].op.axis[0], 4)
    s[chain.P].set_scope("shared")
    s[chain.D].bind(outer, te.thread_axis("blockIdx.x"))
    s[chain.D].bind(inner, te.thread_axis("threadIdx.x"))
    s[chain.Q].compute_at(s[chain.D], inner)
    s[chain.P].compute_at(s[chain.D], inner)
    s[chain.P].bind(s[chain.P].op.axis[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(ScheduleError, match=r"P.i has 6 iterations, and threadIdx.x 4 threads"):
        lower(s, chain.args)


# -- programs that are wrong -------------------------------------------------------------------


def changed(func, rule):
    """Return a program in which `rule` has replaced statements; it must have."""
    body = rewrite(func.body, rule)
    assert body is not func.body
    return PrimFunc(func.name, func.params, func.outputs, body, func.axes)


def fault_of(func, args):
    """Return the kind of the first error, or "wrong" for another result."""
    try:
        return "" if is_right(func, args) else "wrong"
    except ProgramError as error:
        return error.kind


def of_shared(change):
    def rule(node):
        is_load = isinstance(node, Store) and node.buffer.scope == "shared"
        return change(node) if is_load else node

    return rule


def thread(func, name):
    """Return the variable of a thread axis of a program."""
    return next(n.var for n in walk(func.body) if getattr(n, "kind", "") == name)


def moved(store):
    first, *rest = store.indices
    return Store(store.buffer, (first * 0, *rest), store.value, store.origin)


def without_guard(node):
    return node.then if isinstance(node, If) else node


@pytest.fixture
def case():
    """A product whose tiles do not fit, and a barrier for each of its dependences."""
    args = product(9, 10, 6)
    return lower(tiled(args, threads=4, each=1, step=2), args), args


def test_the_program_itself_is_right(case):
    assert fault_of(*case) == ""


def test_each_barrier_is_needed_and_its_loss_is_found(case):
    func, args = case
    barriers = [node for node in walk(func.body) if isinstance(node, Barrier)]
    assert len(barriers) == 2
    for lost in barriers:
        broken = changed(func, lambda node, lost=lost: Seq(()) if node is lost else node)
        assert fault_of(broken, args) in ("race", "uninitialised")


def test_a_store_by_two_threads_is_found(case):
    func, args = case
    assert fault_of(changed(func, of_shared(moved)), args) == "race"


def test_a_store_that_a_thread_leaves_out_is_found(case):
    func, args = case
    tx = thread(func, "threadIdx.x")
    broken = changed(func, of_shared(lambda store: If(compare("lt", tx, 3), store)))
    assert fault_of(broken, args) == "uninitialised"


def test_a_lost_guard_is_found(case):
    func, args = case
    assert fault_of(changed(func, without_guard), args) == "out_of_bounds"


def test_a_shift_past_the_end_of_shared_memory_is_found(case):
    func, args = case

    def shifted(store):
        first, *rest = store.indices
        return Store(store.buffer, (first + 1, *rest), store.value, store.origin)

    assert fault_of(changed(func, of_shared(shifted)), args) in ("out_of_bounds", "uninitialised")


def test_a_barrier_that_some_threads_do_not_reach_is_found(case):
    func, args = case
    tx = thread(func, "threadIdx.x")
    first = next(node for node in walk(func.body) if isinstance(node, Barrier))
    broken = changed(func, lambda n: If(compare("lt", tx, 2), n) if n is first else n)
    assert fault_of(broken, args) == "divergent_barrier"


def test_threads_that_wait_at_different_barriers_are_found(case):
    func, args = case
    tx = thread(func, "threadIdx.x")

    def rule(node):
        if isinstance(node, Barrier):
            return If(compare("lt", tx, 2), Barrier(), Barrier())
        return node

    with pytest.raises(ProgramError) as caught:
        is_right(changed(func, rule), args)
    assert caught.value.kind == "divergent_barrier"
    assert "wait at different places" in str(caught.value)


def test_memory_that_is_private_instead_of_shared_is_found(case):
    func, args = case
    inner = thread(func, "threadIdx.x")
    allocations = [node for node in walk(func.body) if isinstance(node, Allocate)]
    buffers = [node.buffer for node in allocations if node.buffer.scope == "shared"]

    def rule(node):
        if isinstance(node, Allocate) and node.buffer in buffers:
            return node.body
        if getattr(node, "var", None) is inner:
            body = node.body
            for buffer in buffers:
                body = Allocate(buffer, body)
            return type(node)(node.var, node.extent, node.kind, body, node.origin)
        return node

    assert fault_of(changed(func, rule), args) == "uninitialised"


def test_copies_of_a_loop_with_barriers_have_variables_of_their_own():
    """A thread that waits in the first copy of a loop goes on in that copy."""
    A = te.placeholder((4, 3), name="A")
    P = te.compute((4, 3), lambda i, j: A[i, j] * 2.0, name="P")
    C = te.compute((4, 2), lambda i, j: P[3 - i, j] + P[i, 2 - j], name="C")
    s = create_schedule(C.op)
    i, j = s[C].op.axis
    s[C].bind(i, te.thread_axis("threadIdx.x"))
    s[C].unroll(j)
    PP = s.cache_read(P, "shared", [C])
    s[PP].compute_at(s[C], j)
    AA = s.cache_read(P, "shared", [PP])
    s[AA].compute_at(s[PP], s[PP].op.axis[0])
    assert agrees(s, [A, C])


def test_a_parallel_loop_inside_threads_is_refused():
    A = te.placeholder((8, 8), name="A")
    P = te.compute((8, 8), lambda i, j: A[i, j] * 2.0, name="P")
    C = te.compute((8, 8), lambda i, j: P[i, j] + 1.0, name="C")
    s = create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    s[P].compute_at(s[C], C.op.axis[0])
    with pytest.raises(ScheduleError) as caught:
        s[P].parallel(P.op.axis[1])
    assert str(caught.value) == (
        "parallel P.j: a thread of a device cannot run a parallel loop\n"
        "  got       P.j inside C.i, threadIdx.x\n"
        "  hint      bind P.j to threadIdx.x, or leave it serial"
    )


def test_stores_of_several_steps_are_ordered_by_barriers():
    """Other threads load an element in the next step: a barrier is between the two."""
    A = te.placeholder((10, 33), "int16", name="A")
    B = te.compute((10, 31), lambda y, x: A[y, x] + A[y, x + 2], name="B")
    C = te.compute((8, 31), lambda y, x: B[y, x] + B[y + 2, x], name="C")
    s = create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    s[C].bind(C.op.axis[1], te.thread_axis("threadIdx.z"))
    BB = s.cache_read(B, "shared", [C])
    s[BB].compute_at(s[C], C.op.axis[1])
    outer, inner = s[BB].split(s[BB].fuse(*s[BB].op.axis), 3)
    s[BB].bind(inner, te.thread_axis("threadIdx.z"))
    s[BB].split(outer, 4)
    lower(s, [A, C])
