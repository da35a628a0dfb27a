"""Templates of one's own: knobs declared inside, references made, tuned and traced as others."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.autotune import RecordStore, apply_best, best, best_choice, template, tune
from dlcompiler.autotune.features import SpaceFeatures, features_of
from dlcompiler.autotune.models import KnobFeatures
from dlcompiler.autotune.templates import parameters_of
from dlcompiler.errors import TuningError
from dlcompiler.pipeline import build
from dlcompiler.space import Workload, registers_hold
from dlcompiler.target import resolve

CPU = resolve("cpu")
AVX2 = resolve("x86-64-avx2")


def product(n: int, m: int, k: int, dtype: str = "float32"):
    A, B = te.placeholder((n, k), dtype, "A"), te.placeholder((k, m), dtype, "B")
    r = te.reduce_axis((0, k), "r")
    return A, B, te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")


@template(product)
def PRODUCT(s, outs, cfg, target):
    (C,) = outs
    y, x = C.op.axis
    (k,) = C.op.reduce_axis
    cfg.define_split("tile_y", y, num_outputs=2, max_factor=8)
    cfg.define_split("tile_x", x, num_outputs=2, max_factor=32)
    cfg.define_split("tile_k", k, num_outputs=2, policy="power2", max_factor=4)
    cfg.define_reorder("order", ["k", "y"], "all")
    cfg.define_annotate("inner", ["x"], "try_vec")
    cfg.define_knob("unroll", [False, True])
    lanes = target.lanes(C.dtype)
    cfg.multi_filter(
        registers_hold(
            target, lambda e: e["tile_y"].size[-1] * max(e["tile_x"].size[-1] // lanes, 1), spare=4
        )
    )
    yo, yi = cfg["tile_y"].apply(s, C, y)
    xo, xi = cfg["tile_x"].apply(s, C, x)
    ko, ki = cfg["tile_k"].apply(s, C, k)
    s[C].reorder(yo, xo, ko, ki, yi, xi)
    cfg["order"].apply(s, C, [ki, yi])
    cfg["inner"].apply(s, C, [xi])
    if cfg["unroll"].val:
        s[C].unroll(yi)


WORKLOAD = PRODUCT.workload(n=16, m=24, k=10)


def test_the_first_run_declares_the_space():
    space = PRODUCT.space(WORKLOAD, AVX2)
    assert [len(knob.values) for knob in space.knobs] == [4, 8, 3, 2, 2, 2]
    assert [knob.kind for knob in space.knobs] == [
        *("split", "split", "split", "reorder", "annotate", "option"),
    ]
    assert space.knobs[0].values == ((-1, 1), (-1, 2), (-1, 4), (-1, 8))
    assert space.filters[0].rule == "at most 12 vectors in registers"
    assert space.count.value < space.size
    assert PRODUCT.default_config(WORKLOAD, AVX2) == space.at(0)


def test_each_config_is_applied_and_right():
    space = PRODUCT.space(WORKLOAD, CPU)
    reference = PRODUCT.reference(WORKLOAD, 3)
    for point in space.sample(6, seed=1):
        s, args = PRODUCT.template(WORKLOAD, CPU, space.at(point))
        out = np.full((16, 24), np.nan, "float32")
        build(s, args, CPU)(*reference.inputs.values(), out)
        assert (np.abs(out - reference.expected["C"]) <= reference.bound["C"]).all(), point


@pytest.mark.campaign
@pytest.mark.parametrize("index", [lambda i: i, te.assume_bounds])
def test_a_template_of_a_look_up_is_tuned(index):
    def look_up(n: int):
        T, ids = te.placeholder((20, 8), name="T"), te.placeholder((n,), "int32", name="I")
        return T, ids, te.compute((n, 8), lambda i, j: T[index(ids[i]), j], name="C")

    @template(look_up)
    def LOOK_UP(s, outs, cfg, target):
        cfg.define_knob("parallel", [False, True])
        if cfg["parallel"].val:
            s[outs[0]].parallel(outs[0].op.axis[0])

    run = tune(LOOK_UP.workload(n=50), "cpu", template=LOOK_UP, trials=2, block=True)
    assert [trial.outcome for trial in run.trials] == ["ok"] * 2


def test_a_template_is_tuned():
    run = tune(WORKLOAD, "cpu", template=PRODUCT, trials=6, tuner="random", block=True)
    assert [trial.outcome for trial in run.trials] == ["ok"] * 6
    assert run.best.config.tile_y in PRODUCT.space(WORKLOAD, CPU).knobs[0].values


@pytest.mark.campaign
def test_the_best_of_a_template_is_applied():
    store = RecordStore()
    run = tune(WORKLOAD, "cpu", template=PRODUCT, trials=3, tuner="random", db=store, block=True)
    choice = best_choice(WORKLOAD, "cpu", store, template=PRODUCT)
    assert (choice.source, choice.config) == ("record", run.best.config)
    assert best(WORKLOAD, "cpu", store, template=PRODUCT).config == run.best.config
    _, args = apply_best(WORKLOAD, "cpu", store, template=PRODUCT)
    assert [tensor.name for tensor in args] == ["A", "B", "C"]
    larger = PRODUCT.workload(n=32, m=24, k=10)
    assert best_choice(larger, "cpu", store, template=PRODUCT).source == "neighbour"


def test_its_features_are_traced():
    space = PRODUCT.space(WORKLOAD, AVX2)
    features = SpaceFeatures(PRODUCT, WORKLOAD, AVX2, space)
    points = list(space.allowed())
    rows = features.rows(points)
    assert len(rows) == len(points)
    assert features.skeletons <= 2**3 * 4
    for number in range(0, len(points), 97):
        s, _ = PRODUCT.template(WORKLOAD, AVX2, space.at(points[number]))
        own = features_of(s.state, AVX2)
        for name, value in zip(features.columns, rows[number], strict=True):
            assert value == pytest.approx(own.get(name, 0.0), rel=1e-5), (
                name,
                space.at(points[number]),
            )


def test_parameters_survive_as_data():
    def define(n: int, pads=(1, 2), name="x", scale=0.5):
        A = te.placeholder((n,), name="A")
        return A, te.compute((n,), lambda i: A[i] * scale, name=name)

    scaled = template(define, name="scaled")(lambda s, outs, cfg, target: None)
    workload = scaled.workload(n=4, scale=1.5)
    assert str(workload) == "scaled(n=4, pads=json:[1, 2], name=x, scale=json:1.5)"
    assert parameters_of(workload) == {"n": 4, "pads": (1, 2), "name": "x", "scale": 1.5}
    assert scaled.space(workload, CPU).size == 1


def test_a_default_may_be_given():
    apply = lambda s, outs, cfg, target: cfg.define_knob("side", [1, 2, 4])  # noqa: E731
    chosen = template(product, default={"side": 4})(apply)
    assert chosen.default_config(chosen.workload(n=2, m=2, k=2), CPU).side == 4


# -- refusals -----------------------------------------------------------------------------------


def test_names_of_the_library_are_taken():
    with pytest.raises(TuningError, match="the library has an operator of this name"):
        template(product, name="matmul")


def test_names_are_identifiers():
    with pytest.raises(TuningError, match="the name is not an identifier"):
        template(product, name="my/product")


def test_a_workload_of_another_operator_is_refused():
    with pytest.raises(TuningError, match="the workload is not one of the template"):
        tune(PRODUCT.workload(n=1, m=1, k=1), template=template(product, name="other")(print))


@pytest.mark.parametrize("parameters", [{"n": 1}, {"n": 1, "m": 1, "k": 1, "z": 1}])
def test_wrong_arguments_are_refused(parameters):
    with pytest.raises(TuningError, match="workload product"):
        PRODUCT.workload(**parameters)


def test_a_parameter_that_is_no_data_is_refused():
    with pytest.raises(TuningError, match="the parameter k is no data"):
        PRODUCT.workload(n=1, m=1, k=object())


def test_a_space_that_allows_nothing_is_refused():
    def apply(s, outs, cfg, target):
        cfg.define_knob("side", [1, 2])
        cfg.multi_filter(lambda e: e["side"].val > 2, "sides above 2")

    narrow = template(product, name="narrow")(apply)
    with pytest.raises(TuningError, match="no point of the space is allowed") as error:
        narrow.default_config(narrow.workload(n=1, m=1, k=1), CPU)
    assert "expected  sides above 2" in str(error.value)


def test_a_config_may_be_refused_by_the_template():
    def apply(s, outs, cfg, target):
        cfg.define_knob("side", [1, 2])
        if cfg["side"].val == 2:
            cfg.raise_error("2 is too wide")

    wide = template(product, name="wide")(apply)
    workload = wide.workload(n=4, m=4, k=4)
    space = wide.space(workload, CPU)
    with pytest.raises(TuningError, match="2 is too wide"):
        wide.template(workload, CPU, space.config(side=2))
    run = tune(workload, template=wide, tuner="random", trials=2, block=True)
    assert [trial.outcome for trial in run.trials] == ["ok", "refused"]


def test_tuples_are_encoded_item_by_item():
    space = PRODUCT.space(WORKLOAD, AVX2)
    encoding = KnobFeatures(space)
    assert encoding.columns[:4] == ("tile_y[0]", "tile_y[1]", "tile_x[0]", "tile_x[1]")
    rows = encoding.rows(np.arange(space.size))
    assert rows.shape == (space.size, len(encoding.columns))
    assert sorted(set(rows[:, 1])) == [
        1,
        np.float32(np.log2(3)),
        np.float32(np.log2(5)),
        np.float32(np.log2(9)),
    ]


@pytest.mark.parametrize("text", ["{", "[1e400]", "[" * 1000, '"\\ud800"'])
def test_parameters_that_are_no_data_are_refused(text):
    with pytest.raises(TuningError, match="read the parameters of a workload: not data"):
        parameters_of(Workload.of("x", shape=f"json:{text}"))
