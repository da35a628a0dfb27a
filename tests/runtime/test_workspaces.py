"""Workspaces: memory for temporaries that is kept for the next call, and its want is an error."""

import ctypes
import threading
from pathlib import Path

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import OutOfMemory
from dlcompiler.measurement import RemoteKernel
from dlcompiler.pipeline import build
from dlcompiler.runtime import native
from dlcompiler.runtime.libraries import load_library, save_library, save_object
from dlcompiler.runtime.llvm import Options, compile_ir
from dlcompiler.runtime.thread_pool import THREAD_POOL
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from tests.runtime.test_threads import comes_true, run_script

MIB = 1 << 20


def native_function(name, result, *types):
    return ctypes.CFUNCTYPE(result, *types)(native.address(name))


@pytest.fixture(scope="module")
def lend():
    return native_function("dlc_workspace_alloc", ctypes.c_void_p, ctypes.c_int64)


@pytest.fixture(scope="module")
def take():
    return native_function("dlc_workspace_free", None, ctypes.c_void_p)


@pytest.fixture
def idle():
    """Return what tells the idle bytes, which are 0 now: helpers end, and their blocks go."""
    THREAD_POOL.prepare(1)
    native_function("dlc_workspace_release", None)()
    idle_bytes = native_function("dlc_workspace_idle", ctypes.c_int64)
    assert comes_true(lambda: idle_bytes() == 0)
    return idle_bytes


@pytest.fixture
def limit():
    """Set the limit of idle blocks for a test."""
    change = native_function("dlc_workspace_limit", ctypes.c_int64, ctypes.c_int64)
    before = change(native.idle_limit_bytes())
    yield change
    change(before)


def reversed_twice(size, parallel=False):
    """``C[i] = A[n - 1 - i]*2 + 1`` by a temporary of all of A."""
    A = te.placeholder((size,), name="A")
    B = te.compute((size,), lambda i: A[i] * 2, name="B")
    C = te.compute((size,), lambda i: B[size - 1 - i] + 1, name="C")
    s = create_schedule(C.op)
    if parallel:
        s[C].parallel(C.op.axis[0])
        s[B].parallel(B.op.axis[0])
    return build(s, [A, C], name="reversed_twice")


def check(kernel, size=10_000):
    a, c = np.arange(size, dtype="float32"), np.zeros(size, "float32")
    kernel(a, c)
    np.testing.assert_array_equal(c, a[::-1] * 2 + 1)


@pytest.mark.parametrize("size", [0, 1, 4032, 4033, 70_000, 3 * MIB + 1, 40 * MIB])
def test_blocks_are_aligned_and_apart_and_come_again(lend, take, idle, size):
    first, second = lend(size), lend(size)
    assert first % 64 == second % 64 == 0
    assert abs(first - second) >= size + 64
    for block in (first, second):
        ctypes.memset(block, 0xAB, size)
    take(first)
    take(second)
    assert {lend(size), lend(size)} == {first, second}
    take(first)
    take(second)
    assert 2 * size < idle() <= 2 * (1.125 * size + 4160)


def test_blocks_in_the_middle_of_the_list_are_found(lend, take, idle):
    blocks = {size: lend(size) for size in (20_000, 40_000, 80_000, 160_000)}
    for block in blocks.values():
        take(block)
    for size in (40_000, 160_000, 20_000, 80_000):
        assert lend(size) == blocks[size]
    assert idle() == 0
    for block in blocks.values():
        take(block)


def test_idle_blocks_have_a_limit(lend, take, idle, limit):
    limit(3 * MIB)
    blocks = [lend(MIB) for _ in range(8)]
    for block in blocks:
        take(block)
    assert 0 < idle() <= 3 * MIB
    take(lend(10 * MIB))
    assert idle() <= 3 * MIB


def test_a_thread_that_ends_leaves_nothing(lend, take, idle):
    def work():
        take(lend(MIB))
        seen.append(idle())

    seen = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen[0] > MIB
    assert comes_true(lambda: idle() == 0)  # the system's thread ends after Python's


def test_nothing_is_freed_twice_or_lost(take, idle):
    take(None)
    for _ in range(100):
        check(KERNELS["parallel"])
    assert 40_000 < idle() < 50_000


def test_many_threads_at_once(idle):
    threads = [
        threading.Thread(target=lambda: [check(KERNELS["serial"]) for _ in range(50)])
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert comes_true(lambda: idle() == 0)


KERNELS = {
    "serial": reversed_twice(10_000),
    "parallel": reversed_twice(10_000, parallel=True),
    "symbolic": reversed_twice(te.var("n")),
    "symbolic, parallel": reversed_twice(te.var("n"), parallel=True),
}


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("name", ["lib.so", "lib.o", "lib.bin"])
def test_functions_in_files(kind, name, tmp_path):
    path = tmp_path / name
    (save_object if name == "lib.o" else save_library)(KERNELS[kind], path)
    loaded = load_library(path)
    check(loaded)
    assert "dlc_workspace_alloc" in loaded.module.imports


def of_unknown_size(outer_size):
    """``C[i] = sum of B[i, k, k, k]`` over k; B has n * n * n elements for each i."""
    n = te.var("n")
    k = te.reduce_axis((0, n), name="k")
    B = te.compute((4, n, n, n), lambda i, j, k, l: (i + j * k * l).astype("int32"), name="B")  # noqa: E741
    C = te.compute((4,), lambda i: te.sum(B[i, k, k, k], axis=k), name="C")
    s = create_schedule(C.op)
    if not outer_size:
        s[B].compute_at(s[C], C.op.axis[0])
        s[C].parallel(C.op.axis[0])
    return build(s, [n, C], name="f")


@pytest.mark.parametrize("outside", [True, False], ids=["outside", "in each iteration"])
@pytest.mark.parametrize("n", [2**16, 2**22, 2**40, 2**48])
def test_want_of_memory_is_an_error_of_the_call(outside, n, idle):
    f = of_unknown_size(outside)
    c = np.zeros(4, "int32")
    for _ in range(3):
        with pytest.raises(OutOfMemory, match="call f: not enough memory for temporaries: B"):
            f(n, c)
        f(3, c)
    assert c.tolist() == [9, 12, 15, 18]
    with pytest.raises(MemoryError):
        f(n, c)


def overcommits():
    setting = Path("/proc/sys/vm/overcommit_memory")
    return setting.exists() and setting.read_text().strip() == "1"


@pytest.mark.skipif(overcommits(), reason="this system promises memory that it does not have")
def test_want_of_memory_of_known_size():
    A = te.placeholder((8,), name="A", dtype="float64")
    B = te.compute((2**40,), lambda i: A[i % 8] + i, name="B")
    C = te.compute((8,), lambda i: B[i], name="C")
    kernel = build(create_schedule(C.op), [A, C], name="huge")
    arrays = [np.zeros(8) for _ in range(2)]
    with pytest.raises(OutOfMemory) as caught:
        kernel(*arrays)
    assert str(caught.value) == (
        f"call huge: not enough memory for temporaries: B ({8 * 2**40} bytes)"
    )
    remote = RemoteKernel.of(kernel).run(dict(zip("AC", arrays, strict=True)), timeout_s=30)
    assert "not enough memory for temporaries" in remote.message


@pytest.mark.campaign
def test_in_a_forked_child():
    done = run_script(
        """
    import os
    from tests.runtime.test_workspaces import KERNELS, check, native_function
    import ctypes
    idle = native_function("dlc_workspace_idle", ctypes.c_int64)
    check(KERNELS["parallel"])
    before = idle()
    child = os.fork()
    if child == 0:
        assert 0 < idle() <= before
        for kernel in KERNELS.values():
            check(kernel)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    check(KERNELS["symbolic"])
    print("ok")
    """
    )
    assert done.stdout == "ok\n", done.stderr


def test_idle_blocks_are_given_up_where_the_system_has_no_memory():
    done = run_script(
        """
    import ctypes, resource
    from tests.runtime.test_workspaces import native_function
    lend = native_function("dlc_workspace_alloc", ctypes.c_void_p, ctypes.c_int64)
    take = native_function("dlc_workspace_free", None, ctypes.c_void_p)
    take(lend(200 << 20))
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20), -1))
    assert not lend(400 << 20)
    block = lend(180 << 20)
    assert block
    take(block)
    print("ok")
    """
    )
    assert done.stdout == "ok\n", done.stderr


STACK = 4096
LOOKS_AT_ITS_STACK = """
define void @kernel(ptr %A, ptr %C) {{
  %rest = alloca [{size} x i8], align {alignment}
  call void @llvm.memcpy.p0.p0.i64(ptr %C, ptr %rest, i64 {size}, i1 true)
  ret void
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


@pytest.mark.parametrize("alignment", [1, 16, 64])
@pytest.mark.parametrize("byte", [0x7F, 0xFF])
def test_a_kernel_finds_poison_wherever_it_looks_on_the_stack(alignment, byte):
    text = LOOKS_AT_ITS_STACK.format(size=STACK, alignment=alignment)
    module = compile_ir(text, Options.for_target(resolve("cpu")))
    found = np.zeros(STACK, np.uint8)
    native.poisoning(module.address("kernel"), byte)(0, found.ctypes.data)
    assert np.flatnonzero(found != byte).size == 0
