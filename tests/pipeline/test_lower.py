"""`lower` and `build`: the order of passes, observers, arguments."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import CallError, InternalError, ScheduleError, TargetError
from dlcompiler.ir import For, Stmt, Store, rewrite
from dlcompiler.ir.rewrite import children
from dlcompiler.passes import Pass, simplify
from dlcompiler.pipeline import build, lower, passes_of, show_changes
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve


@pytest.fixture
def product():
    a = te.placeholder((8, 8), name="A")
    b = te.placeholder((8, 8), name="B")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((8, 8), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return create_schedule(c.op), [a, b, c]


def refusal(call):
    with pytest.raises(ScheduleError) as caught:
        call()
    return str(caught.value)


def test_every_requirement_is_established_before():
    for name in ("cpu", "gpu", "c"):
        done = set()
        for item in passes_of(resolve(name)):
            assert item.requires <= done
            done |= item.establishes


def test_observers_see_every_pass_in_order(product):
    seen = []
    func = lower(*product, observers=[seen.append])
    assert [change.name for change in seen] == [
        "loop nests", *(item.name for item in passes_of(resolve("cpu")))
    ]  # fmt: skip
    assert [change.number for change in seen] == list(range(1, len(seen) + 1))
    assert seen[0].before is None
    for before, after in itertools.pairwise(seen):
        assert after.before is before.after
    assert seen[-1].after is func


def test_show_changes_prints_a_line_for_each_pass(product, capsys):
    lower(*product, observers=[show_changes])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(passes_of(resolve("cpu")))
    assert lines[0].startswith(" 1 loop nests             created 3 loops, 0 buffers")
    assert "unchanged" in lines[-1]


def test_simple_mode_keeps_the_loops_of_the_schedule(product):
    schedule, (a, b, c) = product
    schedule[c].vectorize(c.op.axis[1])
    assert "for j in vectorized(8):" in str(lower(schedule, [a, b, c], simple_mode=True))
    assert "vectorized" not in str(lower(schedule, [a, b, c]))


def test_a_pass_out_of_order_is_a_bug(product):
    bad = (Pass("late", simplify, requires=frozenset({"nothing gave this"})),)
    with pytest.raises(InternalError, match="runs before nothing gave this"):
        lower(*product, passes=bad)


def without_origins(func):
    def rule(node):
        return Store(node.buffer, node.indices, node.value) if isinstance(node, Store) else node

    return func.with_body(rewrite(func.body, rule))


def without_loop_origins(func):
    def rule(node):
        if isinstance(node, For):
            return For(node.var, node.extent, node.kind, node.body)
        return node

    return func.with_body(rewrite(func.body, rule))


@pytest.mark.parametrize(
    ("forgets", "text"),
    [
        (without_origins, "verify main after forgets: C[i, j] = 0.0 has no stage"),
        (
            without_loop_origins,
            "verify main after forgets: C[i, j] = 0.0 lost its axes C.i, C.j",
        ),
    ],
)
def test_a_pass_that_forgets_where_a_statement_comes_from_is_a_bug(product, forgets, text):
    with pytest.raises(InternalError) as caught:
        lower(*product, passes=[Pass("forgets", forgets)])
    assert str(caught.value).splitlines()[0] == text


def test_origins_name_the_steps_that_made_the_loops(product):
    schedule, (a, b, c) = product
    outer, inner = schedule[c].split(c.op.axis[1], 4)
    made = schedule.state.id
    schedule[c].vectorize(inner)
    schedule[c].unroll(outer)
    func = lower(schedule, [a, b, c])
    found = list(stores(func.body, ()))
    assert len(found) == 4
    for origin in found:
        refs = {(ref.state, str(ref)) for ref in origin}
        assert {(made, "C.j.outer"), (made, "C.j.inner")} <= refs


def stores(stmt, origin):
    """Yield the origin of each assignment, with those of the loops around it."""
    origin = (*origin, *getattr(stmt, "origin", ()))
    if isinstance(stmt, Store):
        yield origin
    for child in children(stmt):
        if isinstance(child, Stmt):
            yield from stores(child, origin)


def test_missing_arguments_are_named(product):
    schedule, (a, _, c) = product
    assert refusal(lambda: lower(schedule, [a, c])) == (
        "lower main: the arguments lack B\n  got       A, C\n  expected  A, B, C"
    )


def test_an_output_may_stay_inside_what_is_lowered_but_not_built(product):
    schedule, (a, b, _) = product
    func = lower(schedule, [a, b])
    assert "allocate C" in str(func)
    assert func.outputs == ()
    assert refusal(lambda: build(schedule, [a, b], name="product")) == (
        "lower product: the arguments lack C\n  got       A, B\n  expected  A, B, C"
    )


def test_an_argument_twice_is_refused(product):
    schedule, (a, b, c) = product
    assert refusal(lambda: lower(schedule, [a, b, b, c])) == (
        "lower main: an argument is given twice\n  got       A, B, B, C"
    )


def test_what_is_not_a_tensor_is_refused(product):
    schedule, (a, b, _) = product
    assert refusal(lambda: lower(schedule, [a, b, 1])) == (
        "lower main: an argument is neither a tensor nor a symbol\n  got       1"
    )


def test_a_tensor_of_another_expression_is_refused(product):
    schedule, args = product
    other = te.placeholder((8, 8), name="other")
    assert refusal(lambda: lower(schedule, [*args, other])) == (
        "lower main: an argument is not part of the schedule\n"
        "  got       Tensor(other: float32[8, 8])\n"
        "  hint      leave it out, or keep it as a parameter that is ignored: unread=[other]"
    )
    computed = te.compute((8, 8), lambda i, j: i + j, name="computed")
    assert refusal(lambda: lower(schedule, [*args, computed])) == (
        "lower main: an argument is not part of the schedule\n"
        "  got       Tensor(computed: int32[8, 8])\n"
        "  hint      leave it out"
    )


def test_arguments_that_are_said_to_be_unread():
    n = te.var("n")
    A, bias = te.placeholder((n,), name="A"), te.placeholder((2, n), "int8", name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    schedule = create_schedule(B.op)
    func = lower(schedule, [bias, A, B], unread=[bias])
    assert str(func).startswith("def main(A_1: int8[2, n], A: float32[n], B: float32[n]):")
    with pytest.raises(ScheduleError, match="the arguments lack A"):
        lower(schedule, [bias, B], unread=[bias])
    for target in ("cpu", "c"):
        kernel = build(schedule, [bias, A, B], target, unread=[bias])
        a, b = np.arange(3, dtype="float32"), np.empty(3, "float32")
        kernel(np.zeros((2, 3), "int8"), a, b)
        np.testing.assert_array_equal(b, a + 1)
        with pytest.raises(CallError, match="n is both 4 and 3"):
            kernel(np.zeros((2, 4), "int8"), a, b)


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (None, "lower main: no list of arguments\n  got       None\n  expected  [A, B, C]"),
        (3, "lower main: no list of arguments\n  got       3\n  expected  [A, B, C]"),
    ],
)
def test_what_is_no_list_of_arguments_is_refused(product, args, text):
    assert refusal(lambda: lower(product[0], args)) == text


def test_what_is_no_schedule_is_refused(product):
    schedule, args = product
    stage = schedule[args[-1]]
    assert refusal(lambda: lower(stage, args)) == (
        "lower: not a schedule\n"
        "  got       Stage(C: i, j, k)\n"
        "  expected  s = te.create_schedule(C.op)"
    )


def test_a_device_without_passes_is_refused(product):
    with pytest.raises(TargetError) as caught:
        lower(*product, target=replace(resolve("cpu"), name="counter", device="abacus"))
    assert str(caught.value) == (
        "lower for counter: no pipeline has this name\n"
        "  got       'abacus'\n  expected  'cpu', 'gpu', 'accelerator'"
    )


def test_an_open_obligation_names_its_step(product):
    schedule, (a, b, c) = product
    cached = schedule.cache_write(c, "local")
    i, j = c.op.axis
    schedule[cached].compute_at(schedule[c], i)
    schedule[c].fuse(i, j)
    assert refusal(lambda: lower(schedule, [a, b, c])).splitlines()[0] == (
        "lower main: C.local is attached at C.i, which is no longer a loop "
        "(attached by: compute_at C.local C i)"
    )


def test_an_attached_stage_cannot_be_an_argument(product):
    schedule, (a, b, c) = product
    cached = schedule.cache_write(c, "local")
    schedule[cached].compute_at(schedule[c], c.op.axis[0])
    assert "is not stored as a whole" in refusal(lambda: lower(schedule, [a, b, cached, c]))


@pytest.mark.parametrize("name", ["a b", "", "1x", "x;y", "a.b", None, 3])
def test_names_that_cannot_be_symbols_are_refused(product, name):
    assert refusal(lambda: build(*product, name=name)).startswith(
        "build: not usable as the name of a kernel"
    )


def test_a_kernel_knows_its_program_and_its_work(product):
    kernel = build(*product, name="matmul")
    assert kernel.work.flops == 2 * 8**3
    assert "for i in range(8):" in str(kernel.func)
    assert "define void @matmul" in kernel.source()
    assert "matmul" in kernel.assembly
    a, b = (np.random.default_rng(n).random((8, 8), np.float32) for n in range(2))
    c = np.empty((8, 8), np.float32)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
