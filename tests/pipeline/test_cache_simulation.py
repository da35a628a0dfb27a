"""Simulated caches of a schedule: counts by loop and tensor, samples, refusals, cancelling."""

import threading
from dataclasses import replace

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import dtypes, te
from dlcompiler.errors import CallError, TargetError
from dlcompiler.ir import (
    Broadcast,
    Builder,
    For,
    Let,
    Load,
    PrimFunc,
    Ramp,
    Store,
    Var,
    call_packed,
    compare,
    decl_buffer,
    index_const,
)
from dlcompiler.ir.numeric import storage
from dlcompiler.pipeline import cache_simulation
from dlcompiler.pipeline.cache_simulation import Cancellation, Cancelled, simulate_program
from dlcompiler.schedule import create_schedule
from dlcompiler.target.presets import X86_64_AVX2
from tests.intrinsics import tiled
from tests.simulate.cache.programs import level, machine
from tests.thread_programs import tiled_matmul

SMALL = machine(level(4096, 4), level(32768, 8, name="L2"))


def matmul(n=48):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return create_schedule(C.op), [A, B, C]


def test_the_parts_add_up():
    found = dlc.simulate_cache(*matmul(), SMALL)
    n = 48
    assert found.accesses == n * n * (1 + 4 * n)
    for number, each in enumerate(found.counts()):
        parts = [found.counts(tensor=tensor)[number] for tensor in "ABC"]
        assert sum(part.misses for part in parts) == each.misses
        assert sum(part.accesses for part in parts) == each.accesses
        for tensor, part in zip(found.tensors, parts, strict=True):
            reached, missed = found.over_time(number, tensor)
            assert (reached.sum(), missed.sum()) == (part.accesses, part.misses)
            assert found.over_tensor(number, tensor).sum() == part.misses
    first, second = found.counts()
    assert second.accesses == first.misses
    assert first.hits + first.misses == first.accesses


def test_counts_inside_a_loop():
    found = dlc.simulate_cache(*matmul(), SMALL)
    assert found.counts(loop="i") == found.counts()
    assert found.counts("k")[0].accesses == 4 * 48**3
    assert found.counts("k", "B", is_write=True)[0].accesses == 0
    assert found.counts("k", "C", is_write=True)[0].accesses == 48**3


def test_an_unknown_loop_or_tensor_is_refused():
    found = dlc.simulate_cache(*matmul(), SMALL)
    with pytest.raises(CallError) as caught:
        found.counts("z")
    assert str(caught.value) == (
        "look up hits and misses: the program has no such loop\n"
        "  got       'z'\n"
        "  expected  i, j, k"
    )
    with pytest.raises(CallError) as caught:
        found.memory_bytes("Z")
    assert str(caught.value) == (
        "look up hits and misses: the program accesses no such tensor\n"
        "  got       'Z'\n"
        "  expected  A, B, C"
    )


def test_the_same_program_has_the_same_counts():
    first, second = (dlc.simulate_cache(*matmul(), SMALL) for _ in range(2))
    assert np.array_equal(first.counters, second.counters)
    assert np.array_equal(first.by_part, second.by_part)
    assert np.array_equal(first.written, second.written)


def test_what_fits_comes_once_and_goes_once():
    found = dlc.simulate_cache(*matmul(), "x86-64-avx2")
    assert found.memory_bytes("A") == found.memory_bytes("B") == 48 * 48 * 4
    assert found.memory_bytes("C") == 2 * 48 * 48 * 4, "a store fetches its line, too"


def test_a_temporary_that_fits_is_not_written_back():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((64,), lambda i: B[i] * 2.0, name="C")
    found = dlc.simulate_cache(create_schedule(C.op), [A, C], SMALL)
    assert found.memory_bytes("B") == 64 * 4
    assert found.memory_bytes() == 4 * 64 * 4


def test_a_long_program_is_sampled():
    found = dlc.simulate_cache(*matmul(), SMALL, most_accesses=100_000)
    assert [str(sample) for sample in found.sampled] == ["first 10 of 48 iterations of i"]
    assert found.accesses == 10 * 48 * (1 + 4 * 48)
    assert "sampled: first 10 of 48 iterations of i)" in repr(found)
    nested = dlc.simulate_cache(*matmul(), SMALL, most_accesses=500)
    assert [str(sample) for sample in nested.sampled] == [
        "first 1 of 48 iterations of i", "first 2 of 48 iterations of j",
    ]  # fmt: skip
    assert nested.accesses <= 500


def test_nests_share_the_accesses_of_a_sample():
    A = te.placeholder((1000,), name="A")
    B = te.compute((1000,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((10,), lambda i: B[i] * 2.0, name="C")
    found = dlc.simulate_cache(create_schedule(C.op), [A, C], SMALL, most_accesses=220)
    assert [str(sample) for sample in found.sampled] == ["first 100 of 1,000 iterations of B.i"]
    assert found.counts(tensor="C")[0].accesses == 10


def test_loops_whose_extent_depends_on_others():
    A = decl_buffer((100,), "float32", name="A")
    ib = Builder()
    a = ib.buffer_ptr(A)
    with ib.for_range(0, 100, name="i") as i, ib.for_range(0, i, name="j") as j:
        a[j] = 1.0
    func = PrimFunc("main", (A,), (A,), ib.get())
    assert simulate_program(func, SMALL).accesses == 99 * 100 // 2
    cut = simulate_program(func, SMALL, 1000)
    assert [str(sample) for sample in cut.sampled] == ["first 10 of 100 iterations of i"]
    assert cut.accesses == 45


def test_a_program_without_accesses():
    A = te.placeholder((0,), name="A")
    B = te.compute((0,), lambda i: A[i] + 1.0, name="B")
    found = dlc.simulate_cache(create_schedule(B.op), [A, B], SMALL)
    assert found.accesses == 0
    assert found.memory_bytes() == 0


@pytest.mark.parametrize("dtype", ["int8", "bool", "float16", "bfloat16", "int32", "uint64"])
def test_every_dtype_has_its_size(dtype):
    A = te.placeholder((640,), dtype, name="A")
    B = te.compute((640,), lambda i: A[i], name="B")
    found = dlc.simulate_cache(create_schedule(B.op), [A, B], "x86-64-avx2")
    assert found.counts(tensor="A")[0].misses == 640 * dtypes.bytes_of(dtype) // 64


def gather():
    A, N = te.placeholder((64,), name="A"), te.placeholder((32,), "int32", name="N")
    B = te.compute((32,), lambda i: A[N[i]], name="B")
    return create_schedule(B.op), [A, N, B]


def choice():
    A = te.placeholder((64,), name="A")
    B = te.compute((32,), lambda i: te.if_then_else(A[i] > 0.0, A[i + 32], 0.0), name="B")
    return create_schedule(B.op), [A, B]


def symbolic():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i], name="B")
    return create_schedule(B.op), [A, B]


@pytest.mark.parametrize(
    ("make", "problem", "because"),
    [
        (gather, "an index of A depends on data", "given inputs"),
        (choice, "a condition depends on data", "given inputs"),
        (symbolic, "its sizes are known only when the program runs", None),
        (tiled_matmul, "its loops are bound to the threads of a device", "one core of a CPU"),
    ],
)
def test_what_cannot_be_traced_is_refused(make, problem, because):
    with pytest.raises(CallError) as caught:
        dlc.simulate_cache(*make(), SMALL)
    assert caught.value.operation == "simulate the caches of main"
    assert caught.value.problem == problem
    assert because is None or because in caught.value.because


def test_a_target_without_caches_is_refused():
    with pytest.raises(TargetError) as caught:
        dlc.simulate_cache(*matmul(), replace(X86_64_AVX2, caches=()))
    assert str(caught.value) == (
        "simulate the caches of main: the target has no caches\n  got       x86-64-avx2"
    )


def test_a_gpu_is_refused():
    with pytest.raises(TargetError) as caught:
        dlc.simulate_cache(*tiled_matmul(), "v100")
    assert str(caught.value) == (
        "simulate the caches of main: the target is not a CPU\n"
        "  got       v100\n"
        "  because   the simulated caches are those of one core, and its threads run at once"
    )


@pytest.mark.parametrize("name", ["cpu", "c", "aarch64", "cortex-a53", "armv7", "riscv64"])
def test_caches_of_machines_that_are_not_here(name):
    """The simulation runs on this machine, whatever the target is."""
    found = dlc.simulate_cache(*matmul(16), name)
    assert found.target.name == name
    assert found.memory_bytes("A") == 16 * 16 * 4


@pytest.mark.parametrize("most", [0, -1, 2.5, True, None])
def test_most_accesses_is_a_positive_integer(most):
    with pytest.raises(CallError) as caught:
        dlc.simulate_cache(*matmul(), SMALL, most_accesses=most)
    assert str(caught.value) == (
        "simulate the caches of main: most_accesses is not a positive integer\n"
        f"  got       {most!r}"
    )


def test_a_cancelled_simulation_raises():
    s, args = matmul()
    func = dlc.lower(s, args, simple_mode=True)
    cancellation = Cancellation()
    cancellation.set()
    with pytest.raises(Cancelled):
        simulate_program(func, SMALL, cancellation=cancellation)


def test_a_running_simulation_is_cancelled_from_another_thread(monkeypatch):
    s, args = matmul(256)
    func = dlc.lower(s, args, simple_mode=True)
    cancellation, errors, begun = Cancellation(), [], threading.Event()
    native = cache_simulation.run_traced
    monkeypatch.setattr(cache_simulation, "run_traced", lambda *args: (begun.set(), native(*args)))

    def run():
        try:
            simulate_program(func, SMALL, 10**9, cancellation)
        except Cancelled as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait()
    cancellation.set()
    thread.join()
    assert len(errors) == 1


def test_code_from_outside_is_refused():
    A = te.placeholder((8,), name="A")
    B = te.extern((8,), [A], lambda i, o: call_packed("test.unknown", *i, *o), name="B")
    with pytest.raises(CallError) as caught:
        dlc.simulate_cache(create_schedule(B.op), [A, B], SMALL)
    assert str(caught.value) == (
        "simulate the caches of main: it calls code from outside\n"
        "  got       test.unknown\n"
        "  because   the order of its accesses is not known"
    )


def vectorized():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    s[B].vectorize(s[B].split(B.op.axis[0], 8)[1])
    return s, [A, B]


def test_a_vector_statement_accesses_its_lanes():
    s, args = vectorized()
    found = simulate_program(dlc.lower(s, args, target="x86-64-avx2"), SMALL)
    plain = dlc.simulate_cache(s, args, SMALL)
    assert found.accesses == plain.accesses == 128
    assert [each.misses for each in found.counts()] == [each.misses for each in plain.counts()]
    cut = simulate_program(dlc.lower(s, args, target="x86-64-avx2"), SMALL, 40)
    assert (cut.accesses, [str(each) for each in cut.sampled]) == (
        32, ["first 2 of 8 iterations of i.outer"],
    )  # fmt: skip


@pytest.mark.parametrize("is_let", [False, True])
def test_lanes_under_a_predicate(is_let):
    A, i = decl_buffer((64,), "float32", name="A"), Var("i", "index")
    place = Ramp(i * 8, index_const(2), 4)
    indices = Var("places", "indexx4") if is_let else place
    mask = compare("lt", indices, Broadcast(index_const(27), 4))
    value = Load(A, (indices,), mask)
    body = Store(A, (indices,), value, predicate=mask)
    body = Let(indices, place, body) if is_let else body
    func = PrimFunc("main", (A,), (A,), For(i, index_const(5), "serial", body))
    found = simulate_program(func, machine(level(4096, 4, line=16)))
    assert found.accesses == 2 * 14, "elements 0, 2, … 26"
    assert found.counts()[0].misses == 7


def test_indices_and_conditions_that_depend_on_inputs():
    s, args = gather()
    places = np.arange(32, dtype="int32") // 8 * 16
    found = dlc.simulate_cache(s, args, SMALL, inputs={"N": places})
    assert (found.counts(tensor="A")[0].accesses, found.counts(tensor="A")[0].misses) == (32, 4)
    assert found.counts(tensor="N")[0].accesses == 64, "each is checked before it is used"
    s, args = choice()
    values = np.where(np.arange(64) % 4, 1.0, -1.0).astype("float32")
    found = dlc.simulate_cache(s, args, SMALL, inputs={"A": values})
    assert found.counts(tensor="A")[0].accesses == 32 + 24


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool", "float16", "bfloat16"])
def test_a_mask_of_every_dtype(dtype):
    M, A = te.placeholder((4, 9), dtype, name="M"), te.placeholder((4, 9), name="A")
    yes = (lambda x: x) if dtype == "bool" else (lambda x: x > te.const(0, dtype))
    B = te.compute((4, 9), lambda i, j: te.if_then_else(yes(M[i, j]), A[i, j], 0.0), name="B")
    values = (np.arange(36) % 3 == 0).reshape(4, 9).astype(storage(dtype))
    found = dlc.simulate_cache(create_schedule(B.op), [M, A, B], SMALL, inputs={"M": values})
    assert found.counts(tensor="A")[0].accesses == 12


def test_an_index_of_an_index():
    A, N, P = (te.placeholder((8,), d, name=n) for n, d in (("A", "float32"), ("N", "int32"),
                                                            ("P", "int16")))  # fmt: skip
    B = te.compute((8,), lambda i: A[N[P[i]]], name="B")
    args = create_schedule(B.op), [A, N, P, B], SMALL
    places = {"N": np.full(8, 5, "int32"), "P": np.arange(8, dtype="int16")[::-1]}
    assert dlc.simulate_cache(*args, inputs=places).counts(tensor="A")[0].accesses == 8
    places["P"] = places["P"] + np.int16(1)
    with pytest.raises(CallError) as caught:
        dlc.simulate_cache(*args, inputs=places)
    assert str(caught.value) == (
        "simulate the caches of main: an index of N is outside\n"
        "  expected  indices inside the shape [8]\n"
        "  because   it depends on the given inputs"
    )


@pytest.mark.parametrize(
    ("name", "array", "text"),
    [
        ("Z", np.zeros(32, "int32"), "there is no such input\n  got       'Z'\n  expected  A, N"),
        ("B", np.zeros(32, "float32"), "there is no such input\n  got       'B'\n  expected  A, N"),
        ("N", np.zeros(31, "int32"), "the array for N does not fit\n  got       int32[31]\n"
                                     "  expected  int32[32]"),
        ("N", [0.5] * 32, "the array for N does not fit\n  got       float64[32]\n"
                          "  expected  int32[32]"),
    ],
)  # fmt: skip
def test_arrays_that_fit_no_input_are_refused(name, array, text):
    with pytest.raises(CallError) as caught:
        dlc.simulate_cache(*gather(), SMALL, inputs={name: array})
    assert str(caught.value) == f"simulate the caches of main: {text}"


def test_what_the_program_computes_decides_nothing():
    N = te.placeholder((8,), "int32", name="N")
    P = te.compute((8,), lambda i: N[i] * 2 % 8, name="P")
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[P[i]], name="B")
    values = {"N": np.zeros(8, "int32")}
    with pytest.raises(CallError) as caught:
        dlc.simulate_cache(create_schedule(B.op), [N, A, B], SMALL, inputs=values)
    assert caught.value.problem == "an index of A depends on data"
    assert caught.value.hint is None


def test_an_input_is_not_asked_for_where_it_does_not_help():
    A = te.placeholder((8, 16), name="A")
    k = te.reduce_axis((0, 16), name="k")
    best, value = te.compute((8,), lambda i: te.argmax(A[i, k], k), name="T")
    schedule = create_schedule(best.op)
    for inputs in ({}, {"A": np.zeros((8, 16), "float32")}):
        with pytest.raises(CallError) as caught:
            dlc.simulate_cache(schedule, [A, best, value], SMALL, inputs=inputs)
        assert caught.value.hint is None


def test_an_extent_that_depends_on_data_is_refused():
    N, A = decl_buffer((1,), "int32", name="N"), decl_buffer((8,), "float32", name="A")
    ib = Builder()
    n, a = ib.buffer_ptr(N), ib.buffer_ptr(A)
    with ib.for_range(0, n[0], name="i") as i:
        a[i] = 1.0
    func = PrimFunc("main", (N, A), (A,), ib.get())
    for inputs in ({}, {"N": np.ones(1, "int32")}):
        with pytest.raises(CallError) as caught:
            simulate_program(func, SMALL, inputs=inputs)
        assert caught.value.problem == "the extent of the loop i depends on data"


def test_an_intrinsic_accesses_what_its_declaration_does():
    s, args, loop = tiled(10, 32, 16, (5, 16, 8))
    plain = dlc.simulate_cache(s, args, "x86-64-avx2")
    s[args[-1]].tensorize(loop, "gemm_f32_5x16x8")
    found = dlc.simulate_cache(s, args, "x86-64-avx2")
    assert found.memory_bytes() == plain.memory_bytes()
    assert found.counts("k.outer", "A")[0].accesses == plain.counts("k.outer", "A")[0].accesses


def test_a_sum_of_many_terms():
    A, B = decl_buffer((3000,), "float32", name="A"), decl_buffer((1,), "float32", name="B")
    ib = Builder()
    a, b = ib.buffer_ptr(A), ib.buffer_ptr(B)
    b[0] = sum((a[n] for n in range(1, 1200)), a[0])
    found = simulate_program(PrimFunc("main", (A, B), (B,), ib.get()), SMALL)
    assert found.counts(tensor="A")[0].accesses == 1200
