"""A device that runs nothing, added from outside, and the one that is there for every generator."""

from dataclasses import replace

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import autotune, codegen, ops, pipeline, target, te
from dlcompiler.codegen.interface import interface_of
from dlcompiler.errors import (
    CallError,
    MeasurementError,
    ScheduleError,
    TargetError,
    UserError,
)
from dlcompiler.pipeline import NullKernel, Pipeline, build_program, lower
from dlcompiler.runtime.device import HostMemory
from dlcompiler.runtime.source import Source, Text
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from dlcompiler.target.presets import C99


@pytest.fixture
def doubled():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] * 2.0, name="B")
    return create_schedule(B.op), [A, B]


class Counter(HostMemory):
    """Counts what is loaded, and runs nothing."""

    loaded = 0

    def load(self, source, target):
        self.loaded += 1
        return NullKernel(source, target)


def count_stores(program, target):
    text = f"{str(program.func).count(' = ')} stores"
    interface = interface_of(program.func, program.func.name)
    return Source("counts", {"counts": Text(text)}, interface, program)


def test_a_device_is_four_lines(monkeypatch, doubled):
    counter = Counter()
    own = replace(C99, name="null", device="null", language="counts", runs_on="counter")
    monkeypatch.setitem(target.REGISTRY, "null", own)
    monkeypatch.setitem(pipeline.PIPELINES, "null", Pipeline(()))
    monkeypatch.setitem(codegen.REGISTRY, "counts", count_stores)
    monkeypatch.setitem(pipeline.DEVICES, "counter", counter)
    kernel = dlc.build(*doubled, target="null")
    assert kernel.source() == "1 stores"
    assert counter.loaded == 1
    kernel(np.zeros(4, "float32"), np.zeros(4, "float32"))


@pytest.mark.parametrize("name", ["aarch64", "riscv64", "wasm32", "x86-64-avx512", "c", "a100"])
def test_every_generator_has_a_device_that_accepts_its_code(name, doubled):
    schedule, args = doubled
    if name == "a100":
        schedule[args[1]].bind(args[1].op.axis[0], te.thread_axis("threadIdx.x"))
    kernel = dlc.build(schedule, args, target=replace(resolve(name), runs_on="null"))
    assert isinstance(kernel, NullKernel)
    assert kernel.source()
    untouched = np.full(4, 7.0, "float32")
    kernel(np.zeros(4, "float32"), untouched)
    assert (untouched == 7.0).all()
    with pytest.raises(CallError, match=r"argument 2 \(B\)"):
        kernel(np.zeros(4, "float32"), np.zeros(5, "float32"))


def test_a_device_that_is_not_there(doubled):
    with pytest.raises(TargetError) as caught:
        dlc.build(*doubled, target=replace(resolve("cpu"), runs_on="moon"))
    assert str(caught.value) == (
        "find the device of cpu: no device has this name\n"
        "  got       'moon'\n"
        "  expected  'host', 'c compiler', 'simulator', 'accelerator', 'opencl', 'cuda', 'null'"
    )


def test_a_function_is_built_without_a_schedule(doubled):
    kernel = build_program(lower(*doubled, name="twice"))
    kernel(np.arange(4, dtype="float32"), out := np.empty(4, "float32"))
    assert out.tolist() == [0, 2, 4, 6]
    assert kernel.texts == ("llvm", "optimized llvm", "assembly")
    assert "define void @twice" in kernel.source("optimized llvm")
    assert kernel.source("llvm") == kernel.source()


def test_a_function_without_threads_is_refused_for_a_gpu(doubled):
    with pytest.raises(TargetError, match="B is computed outside any thread"):
        build_program(lower(*doubled), "a100")


def test_a_text_that_is_not_there(doubled):
    with pytest.raises(dlc.errors.UserError) as caught:
        dlc.build(*doubled, target="c").source("ptx")
    assert str(caught.value) == (
        "source of main: no text has this name\n  got       'ptx'\n  expected  'c', 'header'"
    )


def test_the_wrong_program_is_refused():
    with pytest.raises(ScheduleError, match="build: not a lowered program"):
        build_program("main")


@pytest.mark.parametrize("name", [[], 5, "nope"])
def test_what_names_no_text(name, doubled):
    with pytest.raises(UserError, match=r"source of .*: no text has this name"):
        dlc.build(*doubled).source(name)


@pytest.mark.parametrize("name", ["cpu", "c"])
def test_what_never_runs_is_not_verified(name, doubled):
    with pytest.raises(MeasurementError) as caught:
        dlc.verify(*doubled, target=replace(resolve(name), runs_on="null"))
    assert str(caught.value) == (
        f"verify main: programs for {name} are never run\n"
        f"  got       NullKernel(main for {name}: never run)\n"
        "  because   the device 'null' computes nothing"
    )


@pytest.mark.parametrize("language", ["llvm", "loops"])
def test_a_c_compiler_compiles_c_only(language, doubled):
    with pytest.raises(TargetError, match="compile for cpu: its code is not C"):
        dlc.build(*doubled, target=replace(resolve("cpu"), language=language, runs_on="c compiler"))


@pytest.mark.parametrize(
    ("registry", "field"),
    [
        (pipeline.DEVICES, "runs_on"),
        (pipeline.PIPELINES, "device"),
        (codegen.REGISTRY, "language"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.noun,
)
@pytest.mark.parametrize("entry", [5, None, ()], ids=repr)
def test_an_entry_that_is_none(registry, field, entry, monkeypatch, doubled):
    monkeypatch.setitem(registry, "odd", entry)
    with pytest.raises(TargetError, match=f"the {registry.noun} 'odd' lacks "):
        dlc.build(*doubled, target=replace(resolve("cpu"), **{field: "odd"}))


def test_a_device_without_times(monkeypatch):
    class NoTimes:
        def load(self, source, target):
            return NullKernel(source, target)

    monkeypatch.setitem(pipeline.DEVICES, "odd", NoTimes())
    work = ops.operator("matmul").workload(m=8, n=8, k=8)
    with pytest.raises(TargetError, match=r"the device 'odd' lacks .*times"):
        autotune.best(work, replace(resolve("cpu"), runs_on="odd"))
