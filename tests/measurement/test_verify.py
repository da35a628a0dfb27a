"""`verify`: right results pass, wrong ones and broken kernels are told apart."""

import dataclasses

import pytest

from dlcompiler import te
from dlcompiler.errors import MeasurementError, VerificationError
from dlcompiler.measurement import RemoteKernel, verify
from dlcompiler.measurement.oracle import oracle_of
from dlcompiler.measurement.verification import verify_kernel
from dlcompiler.pipeline import emit_source
from dlcompiler.runtime.source import Text
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve


def product(m=6, n=5, k=7, dtype="float32", offset=0):
    a = te.placeholder((m, k), dtype, "A")
    b = te.placeholder((k, n), dtype, "B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j] + offset, axis=r), name="C")
    return create_schedule(c.op), [a, b, c]


def remote(schedule, args, text=None):
    source, _ = emit_source(schedule, args)
    if text is not None:
        source = dataclasses.replace(source, texts={"llvm": Text(text)})
    return RemoteKernel(source, resolve("cpu"))


def test_a_right_schedule_is_verified_by_both_oracles():
    schedule, args = product()
    i, j = args[2].op.axis
    schedule[args[2]].tile(i, j, 4, 4)
    verified = verify(schedule, args)
    assert verified.oracles == ("numpy", "interpreter")
    assert 0 <= verified.worst <= 1
    assert repr(verified).startswith("Verified(oracle='numpy+interpreter', shape=(6, 5), largest ")


def test_integers_must_be_equal():
    assert verify(*product(dtype="int32")).worst == 0


def test_a_wrong_kernel_is_refused_with_the_first_wrong_element():
    schedule, args = product()
    wrong = remote(*product(offset=1))
    with pytest.raises(VerificationError) as caught:
        verify_kernel(wrong, args, oracle_of(schedule, 0))
    error = caught.value
    assert error.index == (0, 0)
    assert error.oracle == "numpy"
    assert error.shape == (6, 5)
    assert error.bound is not None
    lines = str(error).splitlines()
    assert lines[:2] == [
        "verify C: 30 of 30 elements differ from the oracle",
        "  index     (0, 0)",
    ]
    assert lines[-3:] == ["  oracle    numpy", "  shape     (6, 5)", "  seed      0"]


def test_an_element_that_is_not_written_is_wrong():
    schedule, args = product()
    text = emit_source(schedule, args)[0].text
    name = emit_source(schedule, args)[0].symbol
    nothing = f"define void @{name}(ptr %a, ptr %b, ptr %c) {{\n  ret void\n}}\n"
    assert name in text
    with pytest.raises(VerificationError, match="it was never written"):
        verify_kernel(remote(schedule, args, nothing), args, oracle_of(schedule, 0))


def test_a_crash_is_an_error_that_names_the_signal():
    schedule, args = product()
    name = emit_source(schedule, args)[0].symbol
    crash = (
        f"define void @{name}(ptr %a, ptr %b, ptr %c) {{\n"
        "  %p = getelementptr i8, ptr %c, i64 -70368744177664\n"
        "  store i8 1, ptr %p\n  ret void\n}\n"
    )
    with pytest.raises(MeasurementError, match="SIGSEGV"):
        verify_kernel(remote(schedule, args, crash), args, oracle_of(schedule, 0))


def test_a_hang_ends_at_the_limit():
    schedule, args = product()
    name = emit_source(schedule, args)[0].symbol
    hang = (
        f"define void @{name}(ptr %a, ptr %b, ptr %c) {{\n  br label %x\nx:\n"
        "  store volatile i8 1, ptr %c\n  br label %x\n}\n"
    )
    with pytest.raises(MeasurementError, match="timeout"):
        verify_kernel(remote(schedule, args, hang), args, oracle_of(schedule, 0), timeout_s=1)


def test_the_worker_is_replaced_after_a_crash():
    test_a_crash_is_an_error_that_names_the_signal()
    assert verify(*product()).worst <= 1


def test_zero_size():
    assert verify(*product(m=0)).worst == 0


def test_a_long_program_is_interpreted_on_a_smaller_shape():
    A, B = te.placeholder((256, 256), name="A"), te.placeholder((256, 256), name="B")
    k = te.reduce_axis((0, 256), name="k")
    C = te.compute((256, 256), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "local")
    _, jo, _, ji = s[C].tile(*C.op.axis, 32, 32)
    s[CC].compute_at(s[C], jo)
    s[C].vectorize(ji)
    verified = verify(s, [A, B, C])
    assert verified.oracles == ("numpy", "interpreter on (16, 16)")
