"""Cost models: what they learn, in which unit, that they repeat, and why they say what they say."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlcompiler.autotune.models import (
    CachedFeatures,
    KnobFeatures,
    cache,
    compare_predictions,
    make_model,
)
from dlcompiler.autotune.models.experience import Prior, experience_of
from dlcompiler.autotune.models.labels import labels
from dlcompiler.autotune.models.learners import telling_columns
from dlcompiler.autotune.models.linear import RidgeLearner
from dlcompiler.autotune.models.roofline import RooflineModel, limits_of, roofline_of
from dlcompiler.errors import TuningError
from dlcompiler.space import Knob, Space, Workload

WORKLOAD = Workload.of("x")
KNOBS = [
    Knob("tile", (1, 2, 4, 8, 16, 32)),
    Knob("unroll", (1, 2, 4, 8)),
    Knob("pack", (False, True)),
    Knob("order", ("ij", "ji", "jj")),
]
SPACE = Space(WORKLOAD, KNOBS)
FEATURES = KnobFeatures(SPACE)
ALL = np.arange(SPACE.size)
SEEN, REST = np.split(np.random.default_rng(0).permutation(ALL), 2)
LEARNED = ["xgb", "xgb-rank", "ridge"]


def rate(point):
    """Return calls per second: a product of what each knob does; tiles of 32 fail."""
    config = SPACE.at(int(point))
    if config.tile == 32:
        return None
    return 100 * config.tile * (2.0 if config.pack else 1.0) / (1 + abs(config.unroll - 4))


def fitted(name, seed=0, points=None, features=FEATURES):
    model = make_model(name, features, seed)
    chosen = SEEN if points is None else points
    model.fit([int(p) for p in chosen], [rate(p) for p in chosen])
    return model


# -- features -----------------------------------------------------------------------------------


def test_knobs_become_columns():
    assert FEATURES.columns == ("tile", "unroll", "pack", "order=ij", "order=ji", "order=jj")
    point = SPACE.index_of(SPACE.config(tile=8, unroll=1, pack=True, order="ji"))
    row = FEATURES.rows(np.array([point]))[0]
    np.testing.assert_allclose(row, [np.log2(9), 1.0, 1.0, 0.0, 1.0, 0.0], rtol=1e-6)


def test_numbers_below_zero_keep_their_order():
    column = KnobFeatures(Space(WORKLOAD, [Knob("shift", (-3, 0, 3))])).rows(np.arange(3))
    assert column.ravel().tolist() == [-2.0, 0.0, 2.0]


def test_tuples_have_a_column_for_each_place():
    knobs = [Knob("split", ((1, 3), (3, 1))), Knob("names", (("a", "b"), ("b", "a")))]
    features = KnobFeatures(Space(WORKLOAD, knobs))
    items = ("names[0]=a", "names[0]=b", "names[1]=b", "names[1]=a")
    assert features.columns == ("split[0]", "split[1]", *items)
    rows = features.rows(np.array([0, 3])).tolist()
    assert rows == [[1, 2, 1, 0, 1, 0], [2, 1, 0, 1, 0, 1]]


class Counted:
    columns = FEATURES.columns

    def __init__(self):
        self.asked = 0

    def rows(self, points):
        self.asked += len(points)
        return FEATURES.rows(points)


def test_rows_are_computed_once():
    source = Counted()
    points = ALL[::3]
    kept = CachedFeatures(source, lambda: points)
    for chosen in (points, points[5:9], points[::-1]):
        np.testing.assert_array_equal(kept.rows(chosen), FEATURES.rows(chosen))
    assert source.asked == len(points)
    np.testing.assert_array_equal(kept.rows(ALL), FEATURES.rows(ALL))
    assert source.asked == len(points) + len(ALL) - len(points)


def test_rows_that_take_too_much_are_not_kept(monkeypatch):
    monkeypatch.setattr(cache, "MOST_BYTES", 100)
    source = Counted()
    kept = CachedFeatures(source, lambda: ALL)
    np.testing.assert_array_equal(kept.rows(ALL[3:5]), FEATURES.rows(ALL[3:5]))
    assert source.asked == 2
    np.testing.assert_array_equal(
        CachedFeatures(FEATURES, lambda: None).rows(ALL), FEATURES.rows(ALL)
    )


def test_columns_that_tell_nothing_are_found():
    rows = np.array([[1, 7, 2, 1, np.nan], [3, 7, 4, 3, np.nan], [3, 7, 5, 3, 1]], np.float32)
    assert telling_columns(rows).tolist() == [0, 2, 4]
    assert telling_columns(rows[:0]).tolist() == [0, 1, 2, 3, 4]


# -- what all models that learn do --------------------------------------------------------------


def test_failures_are_the_worst():
    assert labels([2.0, None, 8.0]).tolist() == [1.0, 0.0, 3.0]


@pytest.mark.parametrize("name", LEARNED)
def test_a_prediction_is_log2_of_calls_per_second(name):
    model = fitted(name)
    timed = np.array([p for p in REST if rate(p) is not None])
    wanted = np.log2([rate(p) for p in timed])
    got = model.predict(timed)
    assert got.dtype == np.float64
    # A sum of parabolas cannot be what this is.
    error, correlation = (1.0, 0.7) if name == "ridge" else (0.6, 0.9)
    assert np.mean(np.abs(got - wanted)) < error
    assert np.corrcoef(got, wanted)[0, 1] > correlation


@pytest.mark.parametrize("name", LEARNED)
def test_the_unit_does_not_depend_on_how_fast_calls_are(name):
    model, slower = make_model(name, FEATURES, 0), make_model(name, FEATURES, 0)
    model.fit(SEEN.tolist(), [rate(p) for p in SEEN])
    slower.fit(SEEN.tolist(), [(rate(p) or 0) / 1024 or None for p in SEEN])
    np.testing.assert_allclose(model.predict(ALL) - 10, slower.predict(ALL), atol=1e-3)


@pytest.mark.parametrize("name", LEARNED)
def test_it_ranks_what_it_has_not_seen(name):
    best = REST[np.argsort(-fitted(name).predict(REST))[:5]]
    wanted = sorted((rate(p) or 0 for p in REST), reverse=True)
    share = 0.4 if name == "ridge" else 0.9
    assert sum(rate(p) or 0 for p in best) > share * sum(wanted[:5])


@pytest.mark.parametrize("name", LEARNED)
def test_equal_seeds_and_data_give_equal_predictions_in_any_order(name):
    points = SEEN
    first = fitted(name, 3, points).predict(ALL)
    np.testing.assert_array_equal(first, fitted(name, 3, points[::-1]).predict(ALL))
    assert (first != fitted(name, 4, points).predict(ALL)).any() == (name != "ridge")


@pytest.mark.parametrize("name", LEARNED)
def test_contributions_add_up_to_the_prediction(name):
    model = fitted(name)
    parts = model.contributions(ALL)
    assert parts.shape == (len(ALL), len(model.columns) + 1)
    np.testing.assert_allclose(parts.sum(axis=1), model.predict(ALL), atol=2e-5)
    assert np.ptp(parts[:, -1]) < 1e-9


@pytest.mark.parametrize("name", LEARNED)
def test_importances_add_up_to_one_and_find_what_matters(name):
    found = fitted(name).importance()
    assert tuple(found) == FEATURES.columns
    assert sum(found.values()) == pytest.approx(1.0)
    assert found["tile"] > max(found[f"order={value}"] for value in ("ij", "ji", "jj"))


@pytest.mark.parametrize("name", LEARNED)
def test_what_was_measured_is_less_uncertain(name):
    tiles = SPACE.digits(ALL)[:, 0]
    model = fitted(name, points=ALL[tiles < 3][::2])
    near, far = ALL[tiles == 1], ALL[tiles == 4]
    assert (model.spread(ALL) >= 0).all()
    assert model.spread(near).mean() <= model.spread(far).mean() + 0.05


@pytest.mark.parametrize("name", LEARNED)
@pytest.mark.parametrize(
    "rates", [[None] * 8, [5.0] * 8, [5.0] + [None] * 7], ids=["failed", "equal", "one"]
)
def test_what_teaches_little_is_learned_without_complaint(name, rates):
    model = make_model(name, FEATURES, 0)
    model.fit(list(range(8)), rates)
    predicted = model.predict(ALL)
    assert np.isfinite(predicted).all()
    assert np.isfinite(model.spread(ALL)).all()
    np.testing.assert_allclose(model.contributions(ALL).sum(axis=1), predicted, atol=1e-5)


@pytest.mark.parametrize("name", LEARNED)
def test_before_it_has_learned_it_expects_the_same_of_all(name):
    model = make_model(name, FEATURES, 0)
    assert (model.predict(ALL) == 0).all()
    assert (model.spread(ALL) == 0).all()
    assert set(model.importance().values()) == {0.0}
    assert model.contributions(ALL[:2]).shape == (2, len(FEATURES.columns) + 1)


@pytest.mark.parametrize("name", LEARNED)
def test_a_space_without_columns_is_no_trouble(name):
    features = KnobFeatures(Space(WORKLOAD, []))
    model = make_model(name, features, 0)
    model.fit([0], [4.0])
    assert model.predict(np.array([0])).tolist() == [2.0]
    assert model.contributions(np.array([0])).tolist() == [[2.0]]


@pytest.mark.parametrize("name", LEARNED)
def test_values_that_are_absent_do_no_harm(name):
    class Holes(Counted):
        def rows(self, points):
            rows = FEATURES.rows(points).copy()
            rows[rows[:, 2] == 0, 0] = np.nan
            return rows

    model = fitted(name, features=Holes())
    assert np.isfinite(model.predict(ALL)).all()
    np.testing.assert_allclose(model.contributions(ALL).sum(axis=1), model.predict(ALL), atol=2e-5)


def test_an_unknown_model_is_refused():
    with pytest.raises(TuningError) as error:
        make_model("xgbr", FEATURES, 0)
    assert str(error.value) == (
        "make a cost model: no model has this name\n  got       'xgbr'\n"
        "  expected  'xgb', 'xgb-rank', 'ridge'\n  hint      did you mean 'xgb'?"
    )


def test_without_xgboost_the_error_says_what_there_is(monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(TuningError) as error:
        make_model("xgb", FEATURES, 0)
    assert error.value.problem == "xgboost is not installed"
    assert "tuner='ridge'" in error.value.hint


# -- each model ---------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 40), st.integers(1, 12), st.integers(0, 1000))
def test_ridge_contributions_are_exact_for_any_rows(n, columns, seed):
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(n, columns)).astype(np.float32)
    learner = RidgeLearner()
    learner.fit(rows, generator.normal(size=n))
    parts = learner.contributions(rows)
    np.testing.assert_allclose(parts.sum(axis=1), learner.predict(rows), atol=1e-9)
    assert (learner.spread(rows) >= 0).all()


def test_ridge_recovers_a_line_from_enough_rows():
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(200, 3)).astype(np.float32)
    learner = RidgeLearner()
    learner.fit(rows, rows @ np.array([2.0, -1.0, 0.0]) + 5)
    unseen = generator.normal(size=(50, 3)).astype(np.float32)
    wanted = unseen @ np.array([2.0, -1.0, 0.0]) + 5
    np.testing.assert_allclose(learner.predict(unseen), wanted, atol=0.05)
    sizes = learner.importance()
    assert sizes[0] > sizes[1] > 10 * sizes[2]


class Work:
    """Two counts for four points, as logarithms: operations and bytes."""

    columns = ("flops", "bytes", "other")

    def rows(self, points):
        counts = np.array([[1e9, 1e6], [1e9, 4e9], [2e9, 1e6], [1e9, np.nan]])
        logs = np.log2(1 + counts[np.asarray(points)])
        return np.concatenate([logs, np.zeros((len(points), 1))], axis=1).astype(np.float32)


def test_the_roofline_is_the_tightest_limit():
    model = RooflineModel(("arithmetic", "memory"), limits_of(Work(), {"flops": 1e9, "bytes": 1e9}))
    points = np.arange(4)
    np.testing.assert_allclose(model.predict(points), [0.0, -2.0, -1.0, 0.0], atol=1e-5)
    parts = model.contributions(points)
    np.testing.assert_allclose(parts[:, 0], [0.0, 0.0, -1.0, 0.0], atol=1e-5)
    np.testing.assert_allclose(parts[:, 1], [0.0, -2.0, 0.0, 0.0], atol=1e-5)
    np.testing.assert_allclose(parts.sum(axis=1), model.predict(points), atol=1e-9)


def test_the_roofline_learns_one_factor():
    model = RooflineModel(("arithmetic", "memory"), limits_of(Work(), {"flops": 1e9, "bytes": 1e9}))
    model.fit([0, 1, 2, 3], [0.5, 0.125, 0.25, None])  # half of what the limits allow
    np.testing.assert_allclose(model.predict(np.arange(3)), [-1.0, -3.0, -2.0], atol=1e-5)
    assert model.importance() == {"arithmetic": pytest.approx(2 / 3), "memory": 1 / 3}
    assert model.spread(np.arange(2)).max() < 1e-5
    model.fit([3], [None])
    assert model.predict(np.array([0]))[0] == pytest.approx(-1.0, abs=1e-5)


# -- why ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEARNED)
def test_why_one_was_predicted_faster(name):
    model = fitted(name)
    a = SPACE.index_of(SPACE.config(tile=16, unroll=4, pack=True, order="ij"))
    b = SPACE.index_of(SPACE.config(tile=1, unroll=4, pack=True, order="ij"))
    found = compare_predictions(model, a, b)
    assert found[0].column == "tile"
    assert found[0].factor > 2
    assert [abs(d.log2) for d in found] == sorted((abs(d.log2) for d in found), reverse=True)
    predicted = model.predict(np.array([a, b]))
    assert math.fsum(d.log2 for d in found) == pytest.approx(
        float(predicted[0] - predicted[1]), abs=2e-5
    )
    assert compare_predictions(model, a, a) == ()


# -- transfer -----------------------------------------------------------------------------------

SMALL = Space(Workload.of("x", n=1), [Knob("tile", (1, 2, 4, 8)), Knob("pack", (False, True))])
LARGE = Space(Workload.of("x", n=2), [Knob("pack", (False, True)), Knob("tile", (2, 4, 8, 16, 32))])


def speed(config, scale):
    return scale * (2.0 if config.pack else 1.0) / (1 + abs(np.log2(config.tile / 8)))


def experience():
    points = list(range(SMALL.size))
    rates = [speed(SMALL.at(p), 1000.0) for p in points]
    return experience_of(KnobFeatures(LARGE).columns, [(KnobFeatures(SMALL), points, rates)])


def test_experience_is_by_names_and_relative_to_the_best():
    found = experience()
    assert found.columns == ("pack", "tile")
    assert found.labels.max() == 0.0
    row = found.rows[SMALL.index_of(SMALL.config(tile=2, pack=True))]
    np.testing.assert_allclose(row, [1.0, np.log2(3)], rtol=1e-6)
    nothing = experience_of(("pack",), [(KnobFeatures(SMALL), [0, 1], [None, None])])
    assert len(nothing) == 0


@pytest.mark.parametrize("name", LEARNED)
def test_experience_ranks_before_anything_was_measured(name):
    model = make_model(name, KnobFeatures(LARGE), 0, experience())
    points = np.arange(LARGE.size)
    best = LARGE.at(int(points[np.argmax(model.predict(points))]))
    assert best.pack
    assert best.tile in ((4, 8, 16, 32) if name == "ridge" else (4, 8, 16))
    parts = model.contributions(points)
    np.testing.assert_allclose(parts.sum(axis=1), model.predict(points), atol=2e-5)


@pytest.mark.parametrize("name", LEARNED)
def test_own_measurements_set_the_unit_and_outweigh_experience(name):
    model = make_model(name, KnobFeatures(LARGE), 0, experience())
    points = list(range(LARGE.size))
    model.fit(points, [speed(LARGE.at(p), 7.0) for p in points])
    wanted = np.log2([speed(LARGE.at(p), 7.0) for p in points])
    assert np.mean(np.abs(model.predict(np.array(points)) - wanted)) < 0.7
    parts = model.contributions(np.array(points))
    np.testing.assert_allclose(parts.sum(axis=1), model.predict(np.array(points)), atol=2e-5)


def test_experience_counts_less_and_less():
    prior = Prior(experience(), RidgeLearner)
    weights = [prior.weight(n) for n in (0, 64, 128, 1000)]
    assert weights == [1.0, 0.5, 0.25, 0.0]


def test_what_the_roofline_leaves_over_is_learned():
    features = Programs()
    base = roofline_of(features)
    model = make_model("ridge", features, 0, base=base)
    points = np.arange(32)
    assert model.knows
    assert np.allclose(model.predict(points), base.predict(points))
    # What is measured reaches a quarter of the roofline where the flag is set, else all of it.
    flags = features.rows(points)[:, 0]
    rates = 2 ** (base.predict(points) - 2 * flags)
    model.fit(points.tolist(), rates.tolist())
    assert np.allclose(model.predict(points), np.log2(rates), atol=0.3)
    parts = model.contributions(points)
    assert parts.shape == (32, len(model.columns) + 1)
    assert np.allclose(parts.sum(axis=1), model.predict(points), atol=1e-5)
    assert len(set(model.columns)) == len(model.columns)


class Programs:
    """A flag, and cycles that have nothing to do with it."""

    columns = ("flag", "program.compute cycles")

    def rows(self, points):
        points = np.asarray(points)
        cycles = np.log2(1 + 1e6 * (1 + points % 5))
        return np.stack([points % 2, cycles], axis=1).astype(np.float32)
