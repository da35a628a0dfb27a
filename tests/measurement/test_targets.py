"""`verify` takes the targets of `build`, and refuses what `build` refuses."""

import importlib
import threading

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import MeasurementError, ProgramError, TargetError, VerificationError
from dlcompiler.ir import call_packed
from dlcompiler.measurement.oracle import oracle_of
from dlcompiler.runtime.registry import register_func

module = importlib.import_module("dlcompiler.measurement.verification")


def doubled(shape=(64, 32), *, bound=False):
    A = te.placeholder(shape, name="A")
    C = te.compute(shape, lambda *i: A[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    if bound:
        s[C].bind(C.op.axis[0], te.thread_axis("blockIdx.x"))
        s[C].bind(C.op.axis[1], te.thread_axis("threadIdx.x"))
    return s, [A, C]


@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize(
    "target", ["cpu", "x86-64-sse2", "aarch64", "wasm32", "gpu", "v100", "h100", "nonsense"]
)
def test_verify_and_build_refuse_the_same(target, bound):
    outcomes = []
    for function in (dlc.build, lambda s, args, target: dlc.verify(s, args, target=target)):
        try:
            function(*doubled(bound=bound), target)
            outcomes.append("")
        except TargetError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]
    if bound:
        assert not outcomes[0] or target not in ("gpu", "v100", "h100")


def test_loops_bound_to_threads_are_refused_on_a_cpu():
    with pytest.raises(TargetError) as caught:
        dlc.verify(*doubled(bound=True))
    assert str(caught.value).startswith(
        "generate LLVM code for main: a CPU has no device threads\n"
        "  got       i0, bound to blockIdx.x, i1, bound to threadIdx.x\n"
    )


def test_a_stage_outside_any_thread_is_refused_on_a_gpu():
    with pytest.raises(TargetError) as caught:
        dlc.verify(*doubled(), target="gpu")
    assert str(caught.value).startswith(
        "build main for gpu: C is computed outside any thread\n"
        "  because   a host cannot write the memory of a device\n"
    )


def test_more_threads_than_a_gpu_has_are_refused():
    with pytest.raises(TargetError, match="threads"):
        dlc.verify(*doubled((4, 4096), bound=True), target="gpu")


def moved(rows, columns, offset=1.0):
    """Return statements for threads, which cannot be replayed on a smaller shape."""

    @te.hybrid.script
    def script(a):
        b = output_tensor((rows, columns), "float32")  # noqa: F821
        for i in bind("blockIdx.x", rows):  # noqa: F821
            for j in bind("threadIdx.x", columns):  # noqa: F821
                b[i, j] = a[i, j] + offset
        return b

    A = te.placeholder((rows, columns), name="A")
    B = script(A)
    return te.create_schedule(B.op), [A, B]


def test_a_large_program_for_a_gpu_is_replayed_on_a_smaller_shape():
    verified = dlc.verify(*doubled((4096, 256), bound=True), target="gpu")
    assert verified.oracles == ("numpy", "interpreter on (16, 16)")


def test_threads_written_by_hand_are_interpreted_whatever_time_it_takes(monkeypatch):
    s, args = moved(64, 32)
    monkeypatch.setattr(module, "MAX_INTERPRETED_STEPS", 1000)
    verified = dlc.verify(s, args, target="gpu")
    assert (verified.oracles, verified.shape) == (("numpy", "interpreter"), (64, 32))
    monkeypatch.setattr(module, "MAX_SIMULATED_STEPS", 2000)
    with pytest.raises(MeasurementError) as caught:
        dlc.verify(s, args, target="gpu")
    assert str(caught.value) == (
        "verify script: it has too many steps for the interpreter\n"
        "  got       about 4.2e+03 steps\n"
        "  expected  at most 2000\n"
        "  because   only the interpreter finds races of threads in statements written by hand\n"
        "  hint      write them for smaller sizes, and verify the same steps there"
    )


def test_symbols_are_tried_at_several_sizes_on_a_gpu():
    n = te.var("n")
    A = te.placeholder((n, 64, 64), name="A")
    k = te.reduce_axis((0, 64), name="k")
    C = te.compute((n, 64, 64), lambda b, i, j: te.sum(A[b, i, k] * A[b, k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("blockIdx.x"))
    s[C].bind(C.op.axis[1], te.thread_axis("threadIdx.x"))
    assert dlc.verify(s, [A, C], target="gpu").shape == (13, 64, 64)


# -- code from outside ---------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [(0, 0), (2, 1), (3, 2)])
def test_a_function_that_leaves_out_an_element_is_always_refused(missing):
    def all_but_one(a, b):
        kept = b[missing].copy()
        b[...] = a
        b[missing] = kept

    register_func("test.verify.all_but_one", all_but_one, override=True)
    A = te.placeholder((4, 3), name="A")
    B = te.extern(
        (4, 3), [A], lambda i, o: call_packed("test.verify.all_but_one", *i, *o), name="B"
    )
    C = te.compute((4, 3), lambda i, j: B[i, j] + 1.0, name="C")
    for output in (B, C):
        for seed in range(3):
            with pytest.raises(ProgramError, match="1 elements of its outputs are never") as caught:
                dlc.verify(te.create_schedule(output.op), [A, output], seed=seed)
            assert caught.value.index == missing


def test_a_function_that_adds_to_what_is_there_is_refused():
    def adds(a, b):
        b += a

    register_func("test.verify.adds", adds, override=True)
    A = te.placeholder((4,), "int32", name="A")
    B = te.extern((4,), [A], lambda i, o: call_packed("test.verify.adds", *i, *o), name="B")
    with pytest.raises(VerificationError):
        dlc.verify(te.create_schedule(B.op), [A, B])


# -- threads -------------------------------------------------------------------------------------


def test_many_threads_share_the_oracles():
    schedules = [doubled((n, 4))[0] for n in range(1, 30)]
    wrong = []

    def run(seed):
        for s in schedules * 3:
            oracle = oracle_of(s, seed)
            (A,) = s.outputs[0].op.input_tensors
            if not np.array_equal(oracle.expected[s.outputs[0]], oracle.inputs[A] * 2.0):
                wrong.append(seed)

    threads = [threading.Thread(target=run, args=(n % 3,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_oracle_cannot_be_changed():
    s, (A, _) = doubled()
    with pytest.raises(ValueError, match="read-only"):
        oracle_of(s, 0).inputs[A][...] = 0
