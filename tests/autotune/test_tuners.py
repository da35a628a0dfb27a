"""Cost models and tuners: what they learn, that they repeat, and what they do without xgboost."""

import sys

import numpy as np
import pytest

from dlcompiler.autotune.cost_model import Encoding, XGBoostModel, labels
from dlcompiler.autotune.tuners import ModelTuner, RandomTuner, tuner, xgb_tuner
from dlcompiler.errors import TuningError
from dlcompiler.space import Filter, Knob, Space, Workload

WORKLOAD = Workload.of("x")
KNOBS = [
    Knob("tile", (1, 2, 4, 8, 16, 32)),
    Knob("unroll", (1, 2, 4, 8)),
    Knob("pack", (False, True)),
    Knob("order", ("ij", "ji", "jj")),
]
SPACE = Space(WORKLOAD, KNOBS, [Filter("small", lambda v: v["tile"] * v["unroll"] <= 64)])


def rate(point):
    """Return calls per second: a product of what each knob does; tiles of 32 fail."""
    config = SPACE.at(point)
    if config.tile == 32:
        return None
    return config.tile * (2.0 if config.pack else 1.0) / (1 + abs(config.unroll - 4))


def search(made, count, batch=8):
    tried = []
    while len(tried) < count:
        points = [item.point for item in made.propose(min(batch, count - len(tried)))]
        if not points:
            break
        for point in points:
            made.observe(point, rate(point))
            tried.append(point)
    return tried


# -- the model ----------------------------------------------------------------------------------


def test_knobs_become_columns():
    encoding = Encoding(SPACE)
    assert encoding.columns == ("tile", "unroll", "pack", "order=ij", "order=ji", "order=jj")
    config = SPACE.config(tile=8, unroll=1, pack=True, order="ji")
    row = encoding.encode(np.array([SPACE.index_of(config)]))[0]
    np.testing.assert_allclose(row, [np.log2(9), 1.0, 1.0, 0.0, 1.0, 0.0], rtol=1e-6)


def test_numbers_below_zero_keep_their_order():
    column = Encoding(Space(WORKLOAD, [Knob("shift", (-3, 0, 3))])).encode(np.arange(3))
    assert column.ravel().tolist() == [-2.0, 0.0, 2.0]


def test_failures_are_the_worst():
    assert labels([2.0, None, 8.0]).tolist() == [-2.0, -3.0, 0.0]
    assert labels([None, None]).tolist() == [-1.0, -1.0]


def test_the_model_ranks_what_it_has_not_seen():
    points = list(SPACE.allowed())
    seen, rest = points[::2], np.array(points[1::2])
    model = XGBoostModel(SPACE, seed=0)
    assert (model.predict(rest) == 0).all()
    model.fit(seen, [rate(point) for point in seen])
    scores = model.predict(rest)
    best = rest[np.argsort(-scores)[:5]]
    wanted = sorted((rate(int(p)) or 0 for p in rest), reverse=True)
    assert sum(rate(int(p)) or 0 for p in best) > 0.9 * sum(wanted[:5])


# -- tuners -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["random", "xgb"])
def test_equal_seeds_and_measurements_give_equal_proposals(name):
    first, second, other = (search(tuner(name, SPACE, seed), 40) for seed in (3, 3, 4))
    assert first == second
    assert first != other


@pytest.mark.parametrize("name", ["random", "xgb"])
def test_no_point_is_tried_twice_and_all_are_tried_in_the_end(name):
    tried = search(tuner(name, SPACE, 0), 1000)
    assert sorted(tried) == sorted(SPACE.allowed())


def test_the_model_finds_the_best_sooner():
    best = max(rate(p) or 0 for p in SPACE.allowed())

    def first_hit(name, seed):
        tried = search(tuner(name, SPACE, seed), 1000)
        return next(n for n, p in enumerate(tried) if (rate(p) or 0) == best)

    model, chance = (sum(first_hit(name, seed) for seed in range(4)) for name in ("xgb", "random"))
    assert model < chance


def test_a_batch_has_a_random_part():
    class Constant:
        def fit(self, points, rates):
            pass

        def predict(self, points):
            return np.asarray(points, np.float32)

    made = ModelTuner(SPACE, 0, Constant(), epsilon=0.25, first=0)
    proposals = made.propose(8)
    assert [item.origin for item in proposals] == ["model"] * 6 + ["random"] * 2
    batch = [item.point for item in proposals]
    ranked = sorted(SPACE.allowed())[::-1][:6]
    assert list(batch[:6]) == ranked
    assert not set(batch[6:]) & set(ranked)
    assert len(set(batch)) == 8


def test_a_large_space_is_ranked_by_a_sample():
    large = Space(WORKLOAD, [Knob(f"k{n}", tuple(range(8))) for n in range(10)])
    made = xgb_tuner(large, 0)
    for _ in range(3):
        points = [item.point for item in made.propose(16)]
        assert len(set(points)) == 16
        for point in points:
            made.observe(point, 1.0 + point % 7)


def test_without_xgboost_it_draws_at_random_and_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    made = tuner("xgb", SPACE, 0)
    assert isinstance(made, RandomTuner)
    assert made.note.startswith("points are drawn at random: xgboost cannot be imported")
    with pytest.raises(TuningError, match="xgboost cannot be imported"):
        XGBoostModel(SPACE, 0)


def test_an_unknown_tuner_is_refused():
    with pytest.raises(TuningError) as error:
        tuner("xgboost", SPACE, 0)
    assert str(error.value) == (
        "tune: no tuner has this name\n  got       'xgboost'\n"
        "  expected  'random', 'xgb'\n  hint      did you mean 'xgb'?"
    )
