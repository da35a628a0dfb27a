"""Classic AutoTVM: contexts, configs, logs and refusals; ``scripts/tune_*`` are whole scripts."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dlcompiler.autotune.features import SpaceFeatures, features_of
from dlcompiler.autotune.run.tuning_run import TuningRun
from dlcompiler.compat import CompatNote, tvm
from dlcompiler.compat.missing import MissingName
from dlcompiler.compat.targets import resolve
from dlcompiler.compat.tvm import autotvm, te
from dlcompiler.compat.tvm.autotvm.task.space import FallbackConfigEntity, SplitEntity
from dlcompiler.errors import TuningError

SCRIPT = Path(__file__).parent / "scripts/tune_matmul.py"


@autotvm.template("tests/scale")
def scale(n, m, factors=(2.0, 1.0)):
    a = te.placeholder((n, m), name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] * factors[0] + factors[1], name="B")
    s = te.create_schedule(b.op)
    cfg = autotvm.get_config()
    _, j = s[b].op.axis
    cfg.define_split("tile", j, num_outputs=2)
    cfg.define_knob("unroll", [0, 1])
    _, inner = cfg["tile"].apply(s, b, j)
    if cfg["unroll"].val:
        s[b].unroll(inner)
    if cfg["tile"].size[-1] == 24:
        cfg.raise_error("too wide")
    return s, [a, b]


def task(n=4, m=24):
    return autotvm.task.create("tests/scale", args=(n, m, (3.0, 1.0)), target="llvm")


def pair(seconds, index=3, error=0, made=None):
    made = made or task()
    inp = autotvm.MeasureInput(tvm.target.Target("llvm"), made, made.config_space.get(index))
    return inp, autotvm.MeasureResult((seconds,), error, 0.5, 1.6e9)


# -- scripts ------------------------------------------------------------------------------------


@pytest.mark.campaign
def test_a_script_runs_with_its_import_line_changed(tmp_path):
    text = SCRIPT.read_text(encoding="utf-8")
    text = text.replace("import tvm\nfrom tvm import", "from dlcompiler.compat import tvm\n"
                        "from dlcompiler.compat.tvm import")  # fmt: skip
    script = tmp_path / "tune.py"
    script.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Progress: (6/6)" in done.stdout


# -- tasks and configs --------------------------------------------------------------------------


def test_a_task_has_the_space_that_its_template_declares():
    made = task()
    assert repr(made.config_space) == (
        "ConfigSpace (len=16, space_map=\n"
        "   0 tile: Split(policy=factors, product=24, num_outputs=2) len=8\n"
        "   1 unroll: OtherOption([0, 1]) len=2\n"
        ")"
    )
    assert made.workload == ("tests/scale", 4, 24, (3.0, 1.0))
    assert made.flop == 4 * 24 * 2
    config = made.config_space.get(11)
    assert repr(config) == "[('tile', [-1, 4]), ('unroll', 1)],None,11"
    assert config.get_other_option() == {"unroll": 1}
    s, (_, b) = made.instantiate(config)
    assert [axis.extent for axis in s[b].leaf_iter_vars] == [4, 6, 4]


def _two_splits(rule=None):
    cfg = autotvm.ConfigSpace()
    cfg.define_split("y", cfg.axis(128), num_outputs=2)
    cfg.define_split("x", cfg.axis(128), num_outputs=2)
    if rule is not None:
        cfg.multi_filter(filter=rule)
    return cfg


def _is_middling(e):
    return 32 <= e["y"].size[-1] * e["x"].size[-1] < 1024


def test_a_space_counts_what_its_rules_allow():
    whole, some = _two_splits(), _two_splits(_is_middling)
    allowed = [n for n in range(64) if _is_middling(whole.get(n))]
    assert (len(whole), len(some)) == (64, len(allowed))
    assert whole.range_length == some.range_length == 64
    assert some.dims == [8, 8]
    assert [n for n in range(-2, 70) if some.is_index_valid(n)] == allowed
    assert repr(some).startswith(f"ConfigSpace (len={len(allowed)}, ")
    assert repr(some.get(allowed[3])) == repr(whole.get(allowed[3]))
    some.multi_filter(filter=lambda e: e["y"].size[-1] == 1)
    assert len(some) == sum(whole.get(n)["y"].size[-1] == 1 for n in allowed)


def test_indices_of_a_space_with_rules():
    some = _two_splits(_is_middling)
    allowed = [n for n in range(64) if some.is_index_valid(n)]
    assert some.get_next_index(-1) == allowed[0]
    assert some.get_next_index(allowed[2], n=3) == allowed[5]
    assert some.get_next_index(allowed[5], n=-3) == allowed[2]
    assert some.get_next_index(allowed[-1]) is None
    assert some.get_next_index(allowed[0], end=allowed[1]) is None
    drawn = some.sample_ints(10)
    assert len(set(drawn)) == 10
    assert set(drawn) <= set(allowed)
    assert some.get_rand_index() in allowed
    forbidden = next(n for n in range(64) if n not in allowed)
    for index in (forbidden, 64, -1):
        with pytest.raises(TuningError, match="the space has no such config") as caught:
            some.get(index)
        assert f"  expected  one of {len(allowed)} indices below 64" in str(caught.value)


def test_a_config_written_and_read():
    config = task().config_space.get(11)
    again = autotvm.ConfigEntity.from_json_dict(config.to_json_dict())
    assert repr(again) == repr(config)
    for damaged in ({}, {"index": 1, "entity": [["tile", "xx", 3]]}, {"index": 1, "entity": 5}):
        with pytest.raises(TuningError, match="the data was not written by to_json_dict"):
            autotvm.ConfigEntity.from_json_dict(damaged)


@pytest.mark.parametrize("limits", [[-1, 1, 0], [-1, -2, 1], [4, 4]])
def test_a_fallback_without_a_limit_for_each_loop(limits):
    cfg = autotvm.task.FallbackConfigEntity()
    cfg.define_split("tile", cfg.axis(49), num_outputs=3)
    with pytest.raises(
        RuntimeError, match=r"(?s)there must be one limit for each loop.*3 numbers, each"
    ):
        cfg.fallback_split("tile", limits)


def test_a_config_that_the_template_refuses():
    with pytest.raises(TuningError, match="too wide"):
        task().instantiate(task().config_space.get(7))


def test_placeholders_are_arguments():
    @autotvm.template("tests/twice")
    def twice(data):
        out = te.compute(data.shape, lambda *i: data[i] * 2.0, name="out")
        return te.create_schedule(out.op), [data, out]

    made = autotvm.task.create(
        "tests/twice", args=(te.placeholder((3, 4), name="x"),), target="cpu"
    )
    assert made.args == (("TENSOR", (3, 4), "float32"),)
    _, (data, _) = made.instantiate(made.config_space)
    assert data.shape == (3, 4)


@autotvm.template("tests/packed")
def packed(m, n, k):
    a, b = te.placeholder((m, k), name="A"), te.placeholder((n, k), name="B")
    cfg = autotvm.get_config()
    cfg.define_split("tile_y", m, num_outputs=2)
    cfg.define_split("tile_x", cfg.axis(n), num_outputs=2)
    width = cfg["tile_x"].size[-1]
    strips = te.compute((n // width, k, width), lambda z, r, x: b[z * width + x, r], name="strips")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute(
        (m, n), lambda y, x: te.sum(a[y, r] * strips[x // width, r, x % width], axis=r), name="C"
    )
    s = te.create_schedule(c.op)
    yo, yi = cfg["tile_y"].apply(s, c, c.op.axis[0])
    xo, xi = cfg["tile_x"].apply(s, c, c.op.axis[1])
    s[c].reorder(yo, xo, s[c].op.reduce_axis[0], yi, xi)
    s[c].vectorize(xi)
    return s, [a, b, c]


def assert_traced(made, points):
    """Features of the whole space are those of each schedule."""
    machine = resolve("llvm")
    space = made.operator.space(made.work, machine)
    features = SpaceFeatures(made.operator, made.work, machine, space)
    rows = features.rows(np.arange(space.size))
    for point in points:
        s, _ = made.instantiate(made.config_space.get(point))
        own = features_of(s.state, machine)
        expected = [np.float32(own.get(name, np.nan)) for name in features.columns]
        np.testing.assert_array_equal(rows[point], expected)
    return features, rows


def test_features_of_a_classic_template_are_traced():
    features, rows = assert_traced(task(), (0, 3, 6, 8, 14))
    assert features.skeletons <= 6
    assert features.legal(np.arange(16)).tolist() == [n not in (7, 15) for n in range(16)]
    assert np.isnan(rows[[7, 15]]).all()


def test_an_expression_may_depend_on_the_config():
    made = autotvm.task.create("tests/packed", args=(8, 12, 10), target="llvm")
    features, _ = assert_traced(made, range(0, len(made.config_space), 5))
    assert features.skeletons == 6
    inputs = made.operator.reference(made.work, 1)
    s, args = made.instantiate(made.config_space.get(14))
    out = tvm.nd.empty((8, 12))
    tvm.build(s, args)(*map(tvm.nd.array, inputs.inputs.values()), out)
    assert (np.abs(out.numpy() - inputs.expected["C"]) <= inputs.bound["C"]).all()


@pytest.mark.campaign
def test_wrong_answers_are_found():
    @autotvm.template("tests/wrong")
    def wrong(n):
        a = te.placeholder((n,), name="A")
        cfg = autotvm.get_config()
        cfg.define_knob("by", [2, 3])
        b = te.compute((n,), lambda i: a[i] * float(cfg["by"].val), name="B")
        return te.create_schedule(b.op), [a, b]

    made = autotvm.task.create("tests/wrong", args=(64,), target="llvm")
    seen = []
    autotvm.tuner.GridSearchTuner(made).tune(
        2, autotvm.measure_option(), callbacks=[lambda tuner, inputs, results: seen.extend(results)]
    )
    assert sorted(int(result.error_no) for result in seen) == [0, 5]


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["RandomTuner", "GridSearchTuner", "GATuner", "XGBTuner"])
def test_each_tuner_searches(kind):
    made = task(8, 40)
    tuner = getattr(autotvm.tuner, kind)(made)
    tuner.tune(4, autotvm.measure_option(), early_stopping=100)
    assert len(tuner.run.trials) == 4
    assert tuner.best_config.index == tuner.run.best.point
    assert tuner.best_flops == pytest.approx(tuner.run.best.gflops * 1e9)
    assert tuner.best_measure_pair[1].error_no == 0


@pytest.mark.campaign
def test_the_best_is_that_of_the_run_where_trials_are_measured_again(monkeypatch):
    slowest = property(lambda run: max(run.trials, key=lambda trial: trial.seconds))
    monkeypatch.setattr(TuningRun, "best", slowest)
    tuner = autotvm.tuner.GridSearchTuner(task(8, 40))
    tuner.tune(4, autotvm.measure_option())
    assert tuner.best_config.index == tuner.run.best.point
    assert tuner.best_flops == pytest.approx(tuner.run.best.gflops * 1e9)


# -- contexts -----------------------------------------------------------------------------------


def inner_extent(args=(4, 24, (3.0, 1.0))):
    with tvm.target.Target("llvm"):
        s, (_, b) = scale(*args)
    return s[b].leaf_iter_vars[-1].extent


def test_the_best_of_a_log_is_applied():
    slow, fast, failed = pair(2e-3, 3), pair(1e-3, 5), pair("no time", 2, 4)
    with autotvm.apply_history_best([slow, fast, failed]):
        assert inner_extent() == 8
        with autotvm.ApplyConfig(task().config_space.get(2)):
            assert inner_extent() == 3
        with pytest.warns(CompatNote, match="no config is known"):
            assert inner_extent((5, 24)) == 1
    with autotvm.FallbackContext(), pytest.warns(CompatNote, match="first value of each knob"):
        assert inner_extent((7, 24)) == 1


def test_contexts_end_with_their_block():
    with pytest.raises(ValueError, match="stop"), autotvm.apply_history_best([pair(1e-3, 5)]):
        raise ValueError("stop")
    with pytest.warns(CompatNote):
        assert inner_extent((9, 24)) == 1


def test_fallbacks():
    cfg = FallbackConfigEntity()
    cfg.define_split("tile", 128, num_outputs=3)
    cfg.fallback_split("tile", [-1, 8, 4])
    assert cfg["tile"].size == (4, 8, 4)
    cfg["tile"] = SplitEntity((-1, 2, 2))
    assert cfg["tile"].size == (-1, 2, 2)
    assert cfg.is_fallback
    assert cfg.valid()


# -- logs ---------------------------------------------------------------------------------------


def test_lines_of_a_log_come_back():
    inp, result = pair(1e-3, 5)
    again, same = autotvm.record.decode(autotvm.record.encode(inp, result))
    assert same == result
    assert again.task.workload == inp.task.workload
    assert repr(again.config) == repr(inp.config)


def test_bad_lines_are_told_and_the_best_is_picked(tmp_path):
    log, best = tmp_path / "scale.log", tmp_path / "best.log"
    write = autotvm.callback.log_to_file(log)
    for each in (pair(2e-3, 3), pair(1e-3, 5), pair("crashed", 2, 4)):
        write(None, [each[0]], [each[1]])
    with log.open("a") as stream:
        stream.write("nonsense\n")
    with pytest.warns(CompatNote, match="left out: line 4: not JSON"):
        autotvm.record.pick_best(log, best)
    ((inp, result),) = autotvm.record.load_from_file(best)
    assert (inp.config.index, result.costs) == (5, (1e-3,))
    text = io.StringIO()
    with pytest.warns(CompatNote):
        autotvm.record.pick_best(log, text)
    assert text.getvalue() == best.read_text()


@pytest.mark.campaign
def test_a_search_begins_with_what_is_loaded(tmp_path):
    made = task()
    tuner = autotvm.tuner.RandomTuner(made)
    tuner.load_history([pair(1e-9, 5, made=made), pair(1.0, 1, made=task(8, 24))])
    tuner.tune(2, autotvm.measure_option())
    assert [trial.point for trial in tuner.run.prior] == [5]
    assert 5 not in [trial.point for trial in tuner.run.trials]


# -- refusals -----------------------------------------------------------------------------------


def test_a_task_without_a_template():
    with pytest.raises(TuningError, match="no template has this name") as error:
        autotvm.task.create("tests/scales", args=(), target="llvm")
    assert "did you mean 'tests/scale'?" in str(error.value)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: autotvm.measure_option(builder="remote"), "not a LocalBuilder"),
        (lambda: autotvm.LocalBuilder(build_func="ndk"), "only the default build function"),
        (lambda: autotvm.LocalRunner(module_loader=print), "module_loader is not part"),
        (lambda: autotvm.tuner.RandomTuner(task(), pop_size=3), "no such option"),
        (lambda: autotvm.callback.progress_bar(3, si_prefix="X"), "not an SI prefix"),
        (
            lambda: autotvm.callback.log_to_file("x", protocol="pickle"),
            "only the JSON format is supported",
        ),
        (
            lambda: autotvm.record.decode("x", protocol="pickle"),
            "only the JSON format is supported",
        ),
        (lambda: autotvm.record.decode("x"), "not JSON"),
    ],
)
def test_what_makes_no_sense_is_refused(make, problem):
    with pytest.raises(TuningError, match=problem):
        make()


def test_a_template_that_returns_something_else():
    autotvm.template("tests/nothing", lambda n: n)
    with pytest.raises(TuningError, match="the template returned something else"):
        autotvm.task.create("tests/nothing", args=(1,), target="llvm")


def test_options_of_classic_tuners_are_noted():
    with pytest.warns(CompatNote, match="XGBTuner: loss_type: ignored; this search has"):
        autotvm.tuner.XGBTuner(task(), loss_type="rank")
    with pytest.warns(CompatNote, match="caches are not flushed"):
        autotvm.LocalRunner(enable_cpu_cache_flush=True)


@pytest.mark.campaign
def test_an_error_of_a_callback_ends_the_search():
    def callback(tuner, inputs, results):
        raise RuntimeError("enough")

    tuner = autotvm.tuner.RandomTuner(task())
    with pytest.raises(RuntimeError, match="enough"):
        tuner.tune(8, autotvm.measure_option(), callbacks=[callback])
    assert tuner.run.wait().state == "stopped"


def test_names_that_come_later():
    with pytest.raises(MissingName, match=r"tvm\.autotvm\.RPCRunner is not part of dlcompiler yet"):
        autotvm.RPCRunner  # noqa: B018


def test_a_line_that_cannot_be_used_stops_no_other(tmp_path):
    good = (
        '{"input": ["llvm", "f", [8], {}], "config": {"index": 0, "code_hash": null, "entity": '
        '[["tile", "sp", [-1, 4]]]}, "result": [[0.5], 0, 1.0, 1.0], "version": 0.2}'
    )
    path = tmp_path / "log.json"
    lines = [
        good,
        good.replace('"llvm"', '"llvm \'x"'),
        good.replace('"llvm"', '"llvm x"'),
        good.replace("1.0, 1.0", "1.0, " + "9" * 400),
        good,
    ]
    path.write_text("\n".join(lines) + "\n")
    with pytest.warns(CompatNote) as notes:
        pairs = list(autotvm.record.load_from_file(path))
    assert len(pairs) == 2
    text = str(notes[0].message)
    assert "line 2: read a target: No closing quotation" in text
    assert "line 3: read a target: not a flag" in text
    assert "line 4: not JSON: an integer of 400 digits" in text


def test_a_task_for_a_gpu():
    @autotvm.template("test/added_on_a_gpu")
    def added(n):
        a = te.placeholder((n,), name="a")
        b = te.compute((n,), lambda i: a[i] + 1.0, name="b")
        s, cfg = te.create_schedule(b.op), autotvm.get_config()
        cfg.define_split("tile", b.op.axis[0], num_outputs=3)
        block, virtual, thread = cfg["tile"].apply(s, b, b.op.axis[0])
        for axis, tag in ((block, "blockIdx.x"), (virtual, "vthread"), (thread, "threadIdx.x")):
            s[b].bind(axis, te.thread_axis(tag))
        return s, [a, b]

    task = autotvm.task.create("test/added_on_a_gpu", (12,), "cuda -model=v100")
    assert task.operator.schedule_for(resolve("v100"))
    assert len(task.config_space) == 18
    with task.target:
        for index in (0, 7, 17):
            func = tvm.build(*task.instantiate(task.config_space.get(index)))
            result = tvm.nd.empty((12,))
            func(tvm.nd.array(np.zeros(12, "float32")), result)
            np.testing.assert_array_equal(result.numpy(), 1)


def test_measurements_of_two_gpus_are_not_compared():
    made, found = task(), []
    for name, seconds, index in (("v100", 2.0, 3), ("a100", 1.0, 5)):
        target = tvm.target.Target(f"cuda -model={name}")
        inp = autotvm.MeasureInput(target, made, made.config_space.get(index))
        found.append((inp, autotvm.MeasureResult((seconds,), 0, 0.5, 1.6e9)))
    best = autotvm.apply_history_best(found)
    for inp, _ in found:
        assert best.query(inp.target, made.workload) == inp.config
    assert best.query(tvm.target.Target("cuda -arch=sm_70"), made.workload) == found[0][0].config
