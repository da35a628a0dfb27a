"""Features of whole spaces: the same as those of each schedule.

About 20 seconds: 8 random candidates of each template; `make test-full` looks at 1,000.
"""

import dataclasses
import os

import numpy as np
import pytest

from dlcompiler import ops
from dlcompiler.autotune.features import SpaceFeatures, template_features
from dlcompiler.errors import TuningError
from dlcompiler.space import Knob, Space, Workload
from dlcompiler.target import resolve
from tests.autotune.features.conftest import WORKLOADS

CANDIDATES = 1000 if os.environ.get("DLCOMPILER_TEST_FULL") else 8
TARGET = dataclasses.replace(resolve("x86-64-avx2"), cores=2)


def parts(name, parameters):
    operator = ops.operator(name)
    workload = operator.workload(**parameters)
    return operator, workload, operator.space(workload, TARGET)


@pytest.mark.campaign
@pytest.mark.timeout(1200 if CANDIDATES > 100 else 120)
def test_the_same_as_of_each_schedule(named):
    check_against_schedules(named, "nest")


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["itervar", "curve"])
@pytest.mark.parametrize("label", ["matmul", "conv2d", "depthwise", "reduction"])
def test_those_of_autotvm_too(label, kind):
    check_against_schedules(WORKLOADS[label], kind)


def check_against_schedules(named, kind):
    operator, workload, space = parts(*named)
    points = np.array(space.sample(CANDIDATES, 7))
    features = SpaceFeatures(operator, workload, TARGET, space, kind)
    rows = features.rows(points)
    assert rows.shape == (len(points), len(features.columns))
    assert rows.dtype == np.float32
    for point, row in zip(points.tolist(), rows, strict=True):
        alone = template_features(operator, workload, TARGET, space.at(point), kind)
        expected = [np.float32(alone.get(name, np.nan)) for name in features.columns]
        np.testing.assert_array_equal(row, expected, err_msg=str(space.at(point)))
        assert set(alone) <= set(features.columns)


def test_templates_are_run_once_for_many_configs():
    operator, workload, space = parts("matmul", {"m": 512, "n": 512, "k": 512})
    features = SpaceFeatures(operator, workload, TARGET, space)
    assert len(features.columns) > 100
    assert features.skeletons <= 48 < space.count.low / 500


def test_features_tell_configs_apart():
    operator, workload, space = parts("conv2d_direct", {"c": 16, "h": 14, "w": 14, "o": 24,
                                                        "kernel": 3, "padding": 1})  # fmt: skip
    points = np.array(space.sample(300, 1))
    rows = SpaceFeatures(operator, workload, TARGET, space).rows(points)
    different = np.unique(np.nan_to_num(rows, nan=-1), axis=0)
    assert len(different) > 0.95 * len(points)


def test_names_do_not_depend_on_the_shape():
    first = SpaceFeatures(*_made("conv2d_direct", c=16, h=14, w=14, o=24, kernel=3, padding=1))
    second = SpaceFeatures(*_made("conv2d_direct", c=64, h=56, w=56, o=64, kernel=3, padding=1))
    assert set(first.columns) == set(second.columns)


def _made(name, **parameters):
    operator, workload, space = parts(name, parameters)
    return operator, workload, TARGET, space


def test_what_is_known_of_a_plain_product():
    operator, workload, space = parts("matmul", {"m": 64, "n": 64, "k": 64})
    values = {"tile_m": 4, "tile_n": 16, "unroll_k": 1, "form": "tiles", "pack": False,
              "pack_a": False, "panel": 0, "block": 0, "parallel": ""}  # fmt: skip
    config = space.config(**values)
    features = template_features(operator, workload, TARGET, config)
    assert features["matmul.sums.iterations"] == pytest.approx(np.log2(1 + 64**3))
    assert features["matmul.sums.accumulators"] == pytest.approx(np.log2(1 + 8))
    assert features["matmul.sums.lanes"] == pytest.approx(np.log2(1 + 8))
    # The sums of a tile are computed once for each of its 64 places.
    assert features["matmul.sums.started"] == pytest.approx(np.log2(1 + 64))
    # A (read0) stands still from lane to lane, B (read1) moves by one element.
    assert features["matmul.sums.read0.step"] == 0
    assert features["matmul.sums.read1.step"] == 1
    assert features["matmul.sums.read0.bytes"] == pytest.approx(np.log2(1 + 4 * 64 * 64))
    assert features["matmul.sums.executed over needed"] == 1


def test_an_unknown_kind_is_refused():
    operator, workload, space = parts("transpose", {"shape": "8x8"})
    with pytest.raises(TuningError, match="no features have this name") as caught:
        SpaceFeatures(operator, workload, TARGET, space, "colour")
    assert "nest, itervar, curve" in str(caught.value)


def test_a_template_that_asks_too_much_is_refused(monkeypatch):
    monkeypatch.setattr("dlcompiler.autotune.features.skeletons.MOST_SKELETONS", 3)
    operator, workload, space = parts("matmul", {"m": 64, "n": 64, "k": 64})
    features = SpaceFeatures(operator, workload, TARGET, space)
    with pytest.raises(TuningError, match="makes too many decisions by its config"):
        features.columns  # noqa: B018 - which looks for all skeletons


def test_a_space_of_one_point():
    operator = ops.operator("transpose")
    workload = operator.workload(shape="8x8")
    whole = operator.space(workload, TARGET)
    config = whole.at(0)
    space = Space(workload, [Knob(name, (value,)) for name, value in config.values.items()])
    features = SpaceFeatures(operator, workload, TARGET, space)
    assert features.rows(np.array([0, 0])).shape == (2, len(features.columns))
    assert features.rows(np.array([], np.int64)).shape == (0, len(features.columns))
    assert isinstance(workload, Workload)
