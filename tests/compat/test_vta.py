"""`vta`: environments, programs, counters, times, and what is refused."""

import numpy as np
import pytest

from dlcompiler.compat import CompatNote, tvm, vta
from dlcompiler.compat.tvm import rpc, te, topi
from dlcompiler.compat.vta.testing import simulator
from dlcompiler.errors import DLCompilerError, ScheduleError, TargetError, UserError


def _blocks(env, *shape):
    return (*shape, env.BATCH, env.BLOCK_OUT)


def _chain(env, shape, *functions, load="dma_copy", alu="alu"):
    """Return a schedule of elementwise stages on elements of the accumulator."""
    x = te.placeholder(shape, env.acc_dtype, "x")
    stages = [te.compute(shape, lambda *i: x(*i), "loaded")]
    for function in functions:
        before = stages[-1]
        stages.append(te.compute(shape, lambda *i, f=function, b=before: f(b(*i)), "stage"))
    y = te.compute(shape, lambda *i: stages[-1](*i).astype(env.inp_dtype), "y")
    s = te.create_schedule(y.op)
    for stage in stages:
        s[stage].set_scope(env.acc_scope)
    s[stages[0]].pragma(stages[0].op.axis[0], load)
    for stage in stages[1:]:
        s[stage].pragma(stage.op.axis[0], alu)
    s[y].pragma(y.op.axis[0], load)
    return s, [x, y]


def _run(module, x, dtype="int8"):
    y = tvm.nd.empty(x.shape, dtype, tvm.ext_dev(0))
    module(tvm.nd.array(x, tvm.ext_dev(0)), y)
    return y.numpy()


# -- environments -------------------------------------------------------------------------------


def test_the_usual_environment():
    env = vta.get_env()
    assert (env.BATCH, env.BLOCK_IN, env.BLOCK_OUT) == (1, 16, 16)
    assert (env.inp_dtype, env.wgt_dtype, env.acc_dtype, env.out_dtype) == (
        *("int8", "int8", "int32", "int8"),
    )
    assert (env.INP_WIDTH, env.ACC_WIDTH, env.WGT_ELEM_BYTES, env.ACC_ELEM_BITS) == (
        8,
        32,
        256,
        512,
    )
    assert (env.ACC_BUFF_SIZE, env.WGT_BUFF_SIZE, env.UOP_ELEM_BYTES) == (1 << 17, 1 << 18, 4)
    assert env.MODEL == "sim_1x16_i8w8a32_15_15_18_17"
    assert env.target.kind.name == "ext_dev"
    assert env.target.host.kind.name == env.target_vta_cpu.kind.name == "llvm"
    assert env.pkg.cfg_dict["LOG_BLOCK"] == env.LOG_BLOCK_IN == 4
    assert (env.mock.alu, env.mock.dma_copy) == ("skip_alu", "skip_dma_copy")


def test_the_innermost_environment_counts():
    outside = vta.get_env()
    with vta.Environment({**outside.cfg_dict, "TARGET": "xyz", "LOG_BLOCK": 5}) as inside:
        assert vta.get_env() is inside
        assert (inside.TARGET, inside.BLOCK_IN) == ("xyz", 32)
        assert "1x32x32" in inside.gemm.name
    assert vta.get_env() is outside


def test_boards_have_their_clocks():
    assert vta.Environment({"TARGET": "pynq"}).config.clock_hz == 100e6
    assert vta.Environment({"TARGET": "ultra96"}).config.clock_hz == 333e6


def test_wrong_environments():
    with pytest.raises(TargetError, match="unknown size"):
        vta.Environment({"LOG_BLOCKS": 4})
    with pytest.raises(TargetError, match="there is no intrinsic for these dtypes"):
        vta.Environment({"LOG_INP_WIDTH": 4, "LOG_WGT_WIDTH": 4}).gemm  # noqa: B018
    with pytest.raises(DLCompilerError, match=r"vta\.Environment\.nothing is not part"):
        vta.get_env().nothing  # noqa: B018


# -- programs -----------------------------------------------------------------------------------


def test_a_program_and_its_counters():
    env = vta.get_env()
    s, args = _chain(env, _blocks(env, 6, 6), lambda v: v >> 0)
    module = vta.build(s, args, "ext_dev", env.target_host)
    x = np.random.default_rng(0).integers(-100, 100, args[0].shape).astype("int32")
    simulator.clear_stats()
    np.testing.assert_array_equal(_run(module, x), x)
    counted = simulator.stats()
    assert counted.pop("uop_load_nbytes") > 0
    assert counted == {
        "inp_load_nbytes": 0, "wgt_load_nbytes": 0, "acc_load_nbytes": x.nbytes,
        "out_store_nbytes": x.size, "gemm_counter": 0, "alu_counter": 36,
    }  # fmt: skip
    _run(module, x)
    assert simulator.stats()["alu_counter"] == 72
    assert "alu" in module.get_source()
    with vta.Environment({"TARGET": "tsim"}):
        assert simulator.stats() == {"cycle_count": 2 * module.kernel.report().cycles}


def test_tvm_build_and_lower_know_the_accelerator():
    env = vta.get_env()
    s, args = _chain(env, _blocks(env, 2, 2), lambda v: v + 1)
    module = tvm.build(s, args, "ext_dev")
    x = np.zeros(args[0].shape, "int32")
    assert (_run(module, x) == 1).all()
    lowered = vta.lower(s, args, simple_mode=True)
    assert "in vta.acc" in str(lowered)
    assert (_run(vta.build(lowered), x) == 1).all()
    plain = te.create_schedule(args[1].op)
    assert vta.build(plain, args, "llvm").type_key == "llvm"


def test_padding_with_names_that_occur_twice():
    env = vta.get_env()
    x = te.placeholder(_blocks(env, 21, 20), env.acc_dtype, "x")
    loaded = topi.nn.pad(x, [0, 1, 0, 0], [1, 3, 0, 0], name="y")
    result = te.compute(loaded.shape, lambda *i: loaded(*i) >> 0, "y_buf")
    y = te.compute(loaded.shape, lambda *i: result(*i).astype(env.inp_dtype), "y")
    s = te.create_schedule(y.op)
    s[loaded].set_scope(env.acc_scope)
    s[loaded].pragma(loaded.op.axis[0], env.dma_copy)
    s[result].set_scope(env.acc_scope)
    s[result].pragma(result.op.axis[0], env.alu)
    s[y].pragma(y.op.axis[0], env.dma_copy)
    module = vta.build(s, [x, y])
    values = np.random.default_rng(1).integers(-100, 100, x.shape).astype("int32")
    out = tvm.nd.empty(y.shape, "int8")
    module(tvm.nd.array(values), out)
    expected = np.pad(values, ((0, 1), (1, 3), (0, 0), (0, 0)))
    np.testing.assert_array_equal(out.numpy(), expected)


def test_the_published_cycles():
    with vta.Environment({"profile": "A", "lowering": "classic"}) as env:
        s, args = _chain(env, _blocks(env, 6, 6), lambda v: v >> 0)
        assert vta.build(s, args).kernel.report().cycles == 619


def test_times_are_simulated():
    env = vta.get_env()
    s, args = _chain(env, _blocks(env, 6, 6), lambda v: v >> 0)
    module = vta.build(s, args)
    with pytest.warns(CompatNote, match="simulated"):
        evaluator = module.time_evaluator(module.entry_name, tvm.ext_dev(0), number=4, repeat=3)
    x = np.ones(args[0].shape, "int32")
    y = np.zeros(args[1].shape, "int8")
    cost = evaluator(x, y)
    assert (y == 1).all()
    assert len(cost.results) == 3
    assert cost.mean == pytest.approx(module.kernel.report().cycles / 100e6)


def test_a_mock_only_passes_tokens():
    env = vta.get_env()
    shape = _blocks(env, 8, 8)
    whole = vta.build(*_chain(env, shape, lambda v: v + 1))
    alu = vta.build(*_chain(env, shape, lambda v: v + 1, load=env.mock.dma_copy))
    dma = vta.build(*_chain(env, shape, lambda v: v + 1, alu=env.mock.alu))
    cycles = [module.kernel.report().cycles for module in (whole, alu, dma)]
    assert max(cycles[1:]) < cycles[0]
    for module, engine in ((alu, "compute"), (dma, "store")):
        steps, full = module.kernel.instructions.steps, whole.kernel.instructions.steps
        own = [(s.pops, s.pushes) for s in steps if s.instruction.engine == engine]
        assert own == [(s.pops, s.pushes) for s in full if s.instruction.engine == engine]
    y = np.full(shape, 7, "int8")
    with pytest.warns(CompatNote, match="outputs are not computed"):
        alu(np.zeros(shape, "int32"), y)
    assert (y == 7).all()
    with pytest.raises(DLCompilerError, match="leaves out instructions"):
        alu.kernel(np.zeros(shape, "int32"), y)


# -- what is refused ----------------------------------------------------------------------------


def test_a_copy_that_is_not_one():
    env = vta.get_env()
    shape = _blocks(env, 2, 3, 4)
    x = te.placeholder(shape, env.acc_dtype, "x")
    inverted = te.compute(shape, lambda i, j, k, b, c: x(i, 2 - j, k, b, c), "inverted")
    y = te.compute(shape, lambda *i: (inverted(*i) + 1).astype("int8"), "y")
    s = te.create_schedule(y.op)
    result = s.cache_write(y, "global")
    del result
    s[inverted].set_scope(env.acc_scope)
    s[inverted].pragma(inverted.op.axis[0], env.dma_copy)
    with pytest.raises(ScheduleError, match="cannot detect a 2-D pattern"):
        vta.build(s, [x, y])


def test_a_pragma_of_copies_on_a_computation():
    env = vta.get_env()
    s, args = _chain(env, _blocks(env, 2, 2), lambda v: v + 1, alu=env.dma_copy)
    with pytest.raises(ScheduleError, match="it is no copy"):
        vta.build(s, args)


# -- sessions -----------------------------------------------------------------------------------


def test_a_session_finds_what_was_uploaded(tmp_path):
    env = vta.get_env()
    module = vta.build(*_chain(env, _blocks(env, 2, 2), lambda v: v + 1), name="plus")
    module.save(tmp_path / "plus.o")
    remote = rpc.LocalSession()
    remote.upload(tmp_path / "plus.o")
    assert remote.load_module("plus.o") is tvm.runtime.load_module(tmp_path / "plus.o") is module
    assert module["plus"] == module.entry_func
    assert "alu" in (tmp_path / "plus.o").read_text(encoding="utf-8")
    assert remote.ext_dev(0) == tvm.ext_dev(0) == remote.device("ext_dev", 0) != remote.cpu(0)
    with pytest.raises(UserError, match="nothing of this name was uploaded"):
        remote.load_module("minus.o")
    with pytest.raises(UserError, match="there is no such file"):
        remote.upload(tmp_path / "minus.o")


def test_a_session_loads_code_for_the_cpu(tmp_path):
    x = te.placeholder((3,), name="x")
    y = te.compute((3,), lambda i: x[i] + 1.0, "y")
    tvm.build(te.create_schedule(y.op), [x, y]).export_library(tmp_path / "plus.tar")
    remote = rpc.LocalSession()
    remote.upload(tmp_path / "plus.tar", "plus")
    out = np.zeros(3, "float32")
    remote.load_module("plus")(np.zeros(3, "float32"), out)
    assert (out == 1).all()


def test_instructions_of_another_process(tmp_path):
    env = vta.get_env()
    module = vta.build(*_chain(env, _blocks(env, 2, 2), lambda v: v + 1))
    path = tmp_path / "plus.o"
    module.save(path)
    head, rest = path.read_text(encoding="utf-8").split("\n", 1)
    path.write_text(f"{head[:-1]}-\n{rest}", encoding="utf-8")
    remote = rpc.LocalSession()
    remote.upload(path)
    with pytest.raises(UserError, match="another process has saved these instructions"):
        remote.load_module("plus.o")


def test_no_other_machine_is_reached():
    with pytest.warns(CompatNote, match=r"192\.168\.2\.99:9091 is not reached"):
        remote = rpc.connect("192.168.2.99", 9091)
    vta.reconfig_runtime(remote)
    vta.program_fpga(remote, bitstream=None)
    assert isinstance(remote, rpc.LocalSession)
    seen = []
    vta.testing.run(lambda env, remote: seen.append((env, type(remote))))
    assert seen == [(vta.get_env(), rpc.LocalSession)]
