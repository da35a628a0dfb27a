"""Small kernels, written by hand in LLVM IR; a CUDA driver without a device."""

from __future__ import annotations

import pytest

from dlcompiler.runtime import cuda, discovery, threads
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.llvm import Options, compile_ir
from dlcompiler.target import resolve
from tests.fake_cuda import fake_bindings

#: C[i] = A[i] + B[i] over COUNT numbers.
ADD = """
define void @add(ptr %a, ptr %b, ptr %c) {
entry:
  br label %test
test:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp slt i64 %i, COUNT
  br i1 %more, label %body, label %done
body:
  %pa = getelementptr float, ptr %a, i64 %i
  %pb = getelementptr float, ptr %b, i64 %i
  %pc = getelementptr float, ptr %c, i64 %i
  %x = load float, ptr %pa, align 4
  %y = load float, ptr %pb, align 4
  %sum = fadd float %x, %y
  store float %sum, ptr %pc, align 4
  %next = add i64 %i, 1
  br label %test
done:
  ret void
}
"""

#: C[i] += 1 for each i, in parallel; NESTED: each piece again in parallel, by halves.
COUNT_UP = """
declare void @dlc_parallel_for(ptr, ptr, i64, i64)

define void @count_up(ptr %c) {
  call void @dlc_parallel_for(ptr @BODY, ptr %c, i64 0, i64 1000)
  ret void
}

define internal void @nested(i64 %begin, i64 %end, ptr %c) {
  call void @dlc_parallel_for(ptr @plain, ptr %c, i64 %begin, i64 %end)
  ret void
}

define internal void @plain(i64 %begin, i64 %end, ptr %c) {
entry:
  br label %test
test:
  %i = phi i64 [%begin, %entry], [%next, %body]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %done
body:
  %p = getelementptr i32, ptr %c, i64 %i
  %x = load i32, ptr %p
  %y = add i32 %x, 1
  store i32 %y, ptr %p
  %next = add i64 %i, 1
  br label %test
done:
  ret void
}
"""


@pytest.fixture(scope="session")
def options():
    return Options.for_target(resolve("cpu"))


@pytest.fixture(scope="session")
def make_add(options):
    """Return ``add`` for a shape: float32, inputs A and B, output C."""

    def make(shape):
        count = 1
        for extent in shape:
            count *= extent
        module = compile_ir(ADD.replace("COUNT", str(count)), options)
        params = [Param(name, shape, "float32", is_output=name == "C") for name in "ABC"]
        return Function(module, "add", params)

    return make


@pytest.fixture(scope="session")
def add(make_add):
    """``add`` of shape (4, 8)."""
    return make_add((4, 8))


@pytest.fixture(scope="session", params=["plain", "nested"])
def count_up(request, options):
    module = compile_ir(COUNT_UP.replace("BODY", request.param), options)
    return Function(module, "count_up", [Param("C", (1000,), "int32", is_output=True)])


@pytest.fixture
def four_threads():
    threads.set_num_threads(4)
    yield
    threads.set_num_threads(None)


@pytest.fixture
def use(monkeypatch):
    """Return a function that puts bindings in place of NVIDIA's."""

    def put(bindings):
        monkeypatch.setattr(cuda, "bindings", lambda: bindings)
        cuda.connect.cache_clear()
        return bindings.driver

    def found(language):
        names, reason = cuda.device_names()
        return discovery.Devices(tuple(names), reason or "")

    monkeypatch.setattr(discovery, "devices", found)

    yield put
    cuda.connect.cache_clear()


@pytest.fixture
def fake(use):
    return use(fake_bindings())
