"""Kernels for other machines: vectors of the target's width, and objects for its linker."""

import dataclasses
import re

import pytest

from dlcompiler import te
from dlcompiler.errors import TargetError
from dlcompiler.pipeline import build, cross_compile
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve

MACHINES = {
    "x86-64-sse2": (b"\x7fELF\x02", 62, r"\bmulps\s.*%xmm"),
    "x86-64-sse4": (b"\x7fELF\x02", 62, r"\bmulps\s.*%xmm"),
    "x86-64-avx2": (b"\x7fELF\x02", 62, r"\bvfmadd\w+ps\s.*%ymm"),
    "x86-64-avx512": (b"\x7fELF\x02", 62, r"\bvfmadd\w+ps\s.*%zmm"),
    "aarch64": (b"\x7fELF\x02", 183, r"\bfmla\s+v\d+\.4s"),
    "cortex-a53": (b"\x7fELF\x02", 183, r"\bfmla\s+v\d+\.4s"),
    "armv7": (b"\x7fELF\x01", 40, r"\bv(fma|mla)\.f32\s+q"),
    "riscv64": (b"\x7fELF\x02", 243, r"\bvfmacc\.v[vf]\s"),
    "wasm32": (b"\0asm", None, r"\bf32x4\.mul"),
}


def product(target, *, parallel=False):
    """``C = A @ B`` with rows of C in vectors of the target."""
    A, B = te.placeholder((6, 8), name="A"), te.placeholder((8, 64), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((6, 64), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    i, j = C.op.axis
    outer, inner = s[C].split(j, resolve(target).lanes("float32"))
    s[C].reorder(i, outer, s[C].op.reduce_axis[0], inner)
    s[C].vectorize(inner)
    if parallel:
        s[C].parallel(i)
    return s, [A, B, C]


@pytest.mark.parametrize("name", MACHINES)
def test_vectors_of_the_machine(name):
    magic, number, instruction = MACHINES[name]
    module = cross_compile(*product(name), name, "product")
    assert module.object.startswith(magic)
    if number is not None:
        assert int.from_bytes(module.object[18:20], "little") == number
    assert re.search(instruction, module.assembly)
    assert "product" in module.assembly
    assert f"<{resolve(name).lanes('float32')} x float>" in module.llvm_ir
    assert module.needs == ()
    assert module.target.name == name


@pytest.mark.parametrize("name", ["aarch64", "armv7", "riscv64", "wasm32"])
def test_what_must_be_linked_is_named(name):
    assert cross_compile(*product(name, parallel=True), name).needs == ("dlc_parallel_for",)
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[n - 1 - i] * 2.0, name="C")
    module = cross_compile(create_schedule(C.op), [A, C], name)
    assert module.needs == ("dlc_workspace_alloc", "dlc_workspace_free")
    assert module.messages == ("not enough memory for temporaries: B (n elements)",)


def test_an_object_is_written(tmp_path):
    module = cross_compile(*product("aarch64"), "aarch64")
    module.save(tmp_path / "product.o")
    assert (tmp_path / "product.o").read_bytes() == module.object
    assert "object" not in repr(module).replace("ObjectFacts", "")


def test_what_cannot_be_done_is_refused():
    unknown = dataclasses.replace(resolve("aarch64"), features=("+nonsense",))
    with pytest.raises(TargetError, match="LLVM does not know all of this machine"):
        cross_compile(*product("aarch64"), unknown)
    with pytest.raises(TargetError, match="cross_compile makes an object of it"):
        build(*product("aarch64"), "aarch64")
