"""Targets and devices as classic code writes them."""

import warnings

import numpy as np
import pytest

from dlcompiler.compat import CompatNote, simulated, targets, tvm
from dlcompiler.errors import DeviceUnavailable, TargetError, UserError
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.runtime.timing import Timing


def _notes(text):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        machine = targets.resolve(text)
    assert machine.name == "cpu"
    return [str(item.message) for item in found]


@pytest.mark.parametrize("text", ["llvm", "llvm -mcpu=native", "llvm -num-cores=4", None])
def test_this_machine_needs_no_note(text):
    assert _notes(text) == []


def test_another_processor_is_replaced_aloud(monkeypatch):
    host = targets.host()
    poor = type(host)(**{name: getattr(host, name) for name in host.__slots__} | {"features": ()})
    monkeypatch.setattr(targets, "host", lambda: poor)
    (note,) = _notes("llvm -mcpu=skylake-avx512")
    assert note.startswith("target 'llvm -mcpu=skylake-avx512': this machine lacks avx, avx2")
    assert "the code is for this machine" in note
    (note,) = _notes("llvm -mcpu=quux-9000")
    assert "the processor quux-9000 is not known here" in note


def test_a_target_is_parsed():
    target = tvm.target.Target("llvm -mcpu=core-avx2 -libs=cblas", host="llvm")
    assert (target.kind.name, target.mcpu, target.host.kind.name) == ("llvm", "core-avx2", "llvm")
    assert str(target) == "llvm -mcpu=core-avx2 -libs=cblas"
    assert tvm.target.Target({"kind": "llvm", "mcpu": "core-avx2"}).mcpu == "core-avx2"


def test_the_current_target():
    assert tvm.target.Target.current() is None
    with tvm.target.create("llvm") as target:
        assert tvm.target.Target.current(allow_none=False) is target
    with pytest.raises(TargetError, match="no target is set"):
        tvm.target.Target.current(allow_none=False)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hexagon", "the target hexagon is not part of dlcompiler yet"),
        ("stackvm", "the target stackvm is not part of dlcompiler yet"),
        ("lvm", "unknown kind of target"),
        ("llvm -mtriple=armv7l-linux-gnueabihf", "another family of processors"),
        ("llvm mcpu", "not a flag"),
        ("", "not a target"),
    ],
)
def test_targets_that_are_refused(text, problem):
    with pytest.raises(TargetError, match=problem):
        targets.resolve(text)


def test_devices():
    assert tvm.context("llvm -mcpu=core-avx2", 0) == tvm.cpu() == tvm.device("cpu")
    assert tvm.cpu().exist
    assert not tvm.cpu(3).exist
    with pytest.raises(DeviceUnavailable, match="hexagon is not part of dlcompiler yet"):
        tvm.device("hexagon")
    with pytest.raises(DeviceUnavailable, match="unknown kind of device"):
        tvm.device("quux")


def test_a_gpu_is_simulated_with_the_limits_of_a_target():
    gpu = tvm.gpu(0)
    assert gpu == tvm.cuda() == tvm.device("cuda") == tvm.context("nvptx")
    assert gpu != tvm.cpu()
    assert gpu != tvm.opencl()
    assert gpu.exist
    assert (repr(gpu), gpu.device_name, gpu.device_type) == ("cuda(0)", "simulated gpu", 2)
    assert (gpu.max_threads_per_block, gpu.warp_size) == (1024, 32)
    assert gpu.max_thread_dimensions == (1024, 1024, 64)
    assert (gpu.compute_version, gpu.multi_processor_count) == ("8.0", 108)
    assert gpu.max_shared_memory_per_block == 48 * 1024
    assert tvm.runtime.enabled("cuda -arch=sm_80")
    assert not tvm.runtime.enabled("")
    assert tvm.testing.device_enabled(tvm.target.cuda())
    assert not tvm.testing.device_enabled("hexagon")
    assert tvm.nd.array([1.0], gpu).device == gpu


def test_gpus_as_targets():
    assert targets.resolve("cuda -model=titanx").name == "gtx-titan-x"
    assert targets.resolve(tvm.target.cuda("v100")).name == "v100"
    for target in ("opencl", tvm.target.rocm(), tvm.target.vulkan()):
        assert targets.resolve(target).name == "gpu"
    with pytest.warns(CompatNote, match="the GPU abacus is not known"):
        assert targets.resolve("cuda -model=abacus").name == "gpu"
    assert targets.resolve("cuda -arch=sm_90").name == "h100"
    with pytest.warns(CompatNote, match="no GPU of sm_10 is known"):
        assert targets.resolve("cuda -arch=sm_10").name == "gpu"
    tagged = tvm.target.Target("nvidia/nvidia-v100")
    assert (tagged.model, tagged.arch, tagged.libs) == ("v100", "sm_70", ())
    assert targets.resolve(tvm.target.cuda(arch="sm_90")).name == "h100"
    flags = tvm.target.Target("cuda -max_num_threads=256 -libs=cudnn,cublas")
    assert (flags.max_num_threads, flags.thread_warp_size) == (256, 32)
    assert (flags.libs, flags.max_shared_memory_per_block) == (("cudnn", "cublas"), 48 * 1024)
    with pytest.raises(TargetError, match="-thread_warp_size is no number\n  got       'x'"):
        _ = tvm.target.Target("cuda -thread_warp_size=x").thread_warp_size
    cpu = tvm.target.Target("llvm")
    assert (cpu.max_num_threads, cpu.arch, cpu.max_shared_memory_per_block) == (1, "", 0)
    with tvm.target.Target("cuda"):
        assert tvm.target.Target.current().max_num_threads == 1024
        assert tvm.target.Target.current().thread_warp_size == 32
        assert tvm.target.Target.current().keys == ("cuda", "gpu")


def test_a_program_for_a_gpu_runs_in_the_simulator(tmp_path):
    A = tvm.te.placeholder((64,), name="A")
    B = tvm.te.compute((64,), lambda i: A[i] + 1.0, name="B")
    s = tvm.te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 32)
    s[B].bind(outer, tvm.te.thread_axis("blockIdx.x"))
    s[B].bind(inner, tvm.te.thread_axis("threadIdx.x"))
    with pytest.warns(CompatNote, match="the simulator runs it, not a GPU"):
        add = tvm.build(s, [A, B], "cuda", name="add")
    a, b = tvm.nd.array(np.arange(64, dtype="float32"), tvm.gpu()), tvm.nd.empty((64,))
    add(a, b)
    tvm.testing.assert_allclose(b.numpy(), a.numpy() + 1)
    device = add.imported_modules[0]
    assert device.type_key == "cuda"
    assert "add_kernel0(" in device.get_source()
    assert "__global__" in device.get_source()
    assert "__kernel" in device.get_source("cl")
    for suffix, word in (("cu", "__global__"), ("cl", "__kernel"), ("ptx", ".visible .entry")):
        device.save(tmp_path / f"add.{suffix}")
        assert word in (tmp_path / f"add.{suffix}").read_text()
    with pytest.raises(UserError, match="spirv"):
        device.save(tmp_path / "add.spirv")
    assert device.get_source("ll").startswith("# launch: blockIdx.x 2, threadIdx.x 32")
    assert add.get_source() == "launch add_kernel0: blockIdx.x 2, threadIdx.x 32\n"
    with pytest.warns(CompatNote, match="the times are .* not (those of a GPU|measured)"):
        evaluate = add.time_evaluator("add", tvm.gpu(), number=100)
    assert evaluate(a, b).mean > 0
    with pytest.raises(DeviceUnavailable, match="a simulated program cannot be exported"):
        add.export_library("add.so")
    with pytest.raises(UserError, match="there is no such function"):
        add["sub"]


def test_times_of_a_simulated_gpu_are_predicted_if_there_is_a_model(monkeypatch):
    A = tvm.te.placeholder((8,), name="A")
    B = tvm.te.compute((8,), lambda i: A[i] + 1.0, name="B")
    s = tvm.te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], tvm.te.thread_axis("threadIdx.x"))
    with pytest.warns(CompatNote):
        add = tvm.build(s, [A, B], "cuda", name="add")
    origin = Provenance("predicted", "a model")
    for name, value in (
        ("kind_of_times", lambda _: "predicted"),
        ("provenance_of_times", lambda *_: origin),
        ("measure", lambda kernel, arrays: Timing((2e-6,), provenance=origin)),
    ):
        monkeypatch.setattr(simulated, name, value)
    with pytest.warns(CompatNote, match="add: the times are predicted by a model, not measured"):
        evaluate = add.time_evaluator("add", tvm.gpu(), number=400, repeat=3)
    a, b = tvm.nd.array(np.ones(8, "float32")), tvm.nd.empty((8,))
    assert evaluate(a, b).results == (2e-6, 2e-6, 2e-6)
    np.testing.assert_array_equal(b.numpy(), 2)


def test_options_of_passes():
    context = tvm.transform.PassContext(opt_level=3, config={"tir.disable_vectorize": True})
    with pytest.warns(CompatNote, match="has no effect here"), context:
        _lower()
    with pytest.raises(UserError, match="unknown option"):
        tvm.transform.PassContext(config={"tir.quux": 1})
    with pytest.raises(UserError, match=r"tir.add_lower_pass is not part of dlcompiler yet"):
        tvm.transform.PassContext(config={"tir.add_lower_pass": []})


def test_the_checks_of_accesses():
    with tvm.transform.PassContext(config={"tir.instrument_bound_checkers": True}):
        A = tvm.te.placeholder((4,), "int32", name="A")
        B = tvm.te.compute((4,), lambda i: A[A[i]], name="B")
        module = tvm.build(tvm.te.create_schedule(B.op), [A, B])
    with pytest.raises(tvm.TVMError):
        module(tvm.nd.array(np.full(4, 7, "int32")), tvm.nd.empty((4,), "int32"))


def _lower():
    A = tvm.te.placeholder((4,), name="A")
    B = tvm.te.compute((4,), lambda i: A[i] + 1, name="B")
    return tvm.lower(tvm.te.create_schedule(B.op), [A, B])


def test_a_quotation_without_an_end_is_refused():
    with pytest.raises(TargetError) as error:
        tvm.target.Target("llvm -mcpu='x")
    assert str(error.value) == ('read a target: No closing quotation\n  got       "llvm -mcpu=\'x"')
