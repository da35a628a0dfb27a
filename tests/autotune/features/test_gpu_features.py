"""Features of configs on a GPU come from the counters of their warps."""

import numpy as np
import pytest

from dlcompiler.autotune.features import space_counters
from dlcompiler.autotune.features.gpu_features import GPUFeatures
from dlcompiler.autotune.features.space_counters import SpaceCounters
from dlcompiler.target import resolve
from tests.autotune.features.gpu_templates import ROWS


@pytest.fixture
def counters(monkeypatch):
    monkeypatch.setattr(space_counters, "CHECKED", 0)
    target, workload = resolve("rtx-a6000"), ROWS.workload(n=16, m=64)
    return SpaceCounters(ROWS, workload, target, ROWS.space(workload, target))


def test_features_are_counters_and_their_ratios(counters):
    features = GPUFeatures(counters)
    points = np.arange(0, counters.space.size, 17)
    points = points[~counters.counts(points).is_refused]
    rows = dict(zip(features.columns, features.rows(points).T, strict=True))
    table = counters.counts(points).table
    assert rows["kernel0.blocks"] == pytest.approx(np.log2(1 + table["kernel0.blocks"]))
    sectors, requests = table["C.load A.sectors"], table["C.load A.requests"]
    assert rows["C.load A.sectors a request"] == pytest.approx(sectors / requests)
    assert not np.isnan(list(rows.values())).any()


def test_a_refused_config_has_no_features(counters):
    features = GPUFeatures(counters)
    config = counters.space.config(ty=8, tx=48, tz=4, step=1)
    (row,) = features.rows(np.array([counters.space.index_of(config)]))
    assert np.isnan(row).all()
