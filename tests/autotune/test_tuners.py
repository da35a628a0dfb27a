"""Tuners: that they repeat, keep to what they may propose, find the best, and never get stuck."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlcompiler.autotune.models import KnobFeatures, make_model
from dlcompiler.autotune.models.experience import experience_of
from dlcompiler.autotune.tuners import (
    TUNERS,
    BaseTuner,
    Candidates,
    DescentTuner,
    GeneticTuner,
    ModelTuner,
    Strategy,
    tuner,
)
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
LARGE = Space(
    WORKLOAD,
    [Knob(f"k{n}", tuple(range(8))) for n in range(10)],
    [Filter("odd", lambda v: v["k0"] + v["k1"] != 3)],
)
NAMES = [name for name in TUNERS if name != "roofline"]
RANDOM = [name for name in NAMES if name != "grid"]


def rate(point, space=SPACE):
    """Return calls per second: a product of what each knob does; tiles of 32 fail."""
    config = space.at(point)
    if config.tile == 32:
        return None
    return config.tile * (2.0 if config.pack else 1.0) / (1 + abs(config.unroll - 4))


def search(made, count, batch=8, measured=rate):
    tried = []
    while len(tried) < count:
        proposals = made.propose(min(batch, count - len(tried)))
        if not proposals:
            break
        assert len(proposals) <= batch
        for proposal in proposals:
            made.observe(proposal.point, measured(proposal.point))
            tried.append(proposal.point)
    return tried


# -- what all tuners do -------------------------------------------------------------------------


@pytest.mark.campaign
@pytest.mark.parametrize("name", RANDOM)
def test_equal_seeds_and_measurements_give_equal_proposals(name):
    first, second, other = (search(tuner(name, SPACE, seed), 30) for seed in (3, 3, 4))
    assert first == second
    assert first != other


@pytest.mark.campaign
@pytest.mark.parametrize("name", RANDOM)
def test_the_order_in_which_results_of_a_batch_arrive_makes_no_difference(name):
    first, second = (tuner(name, SPACE, 1) for _ in range(2))
    for _ in range(5):
        batch, same = first.propose(8), second.propose(8)
        assert batch == same
        for proposal in batch:
            first.observe(proposal.point, rate(proposal.point))
        for proposal in reversed(same):
            second.observe(proposal.point, rate(proposal.point))


@pytest.mark.campaign
@pytest.mark.parametrize("name", NAMES)
def test_no_point_is_tried_twice_and_all_are_tried_in_the_end(name):
    tried = search(tuner(name, SPACE, 0), 1000, 24)
    assert sorted(tried) == sorted(SPACE.allowed())


@pytest.mark.parametrize("name", NAMES)
def test_it_keeps_to_the_points_that_it_is_given(name):
    points = sorted(SPACE.allowed())[::3]
    tried = search(tuner(name, SPACE, 0, points=points), 1000, 16)
    assert sorted(tried) == points


@pytest.mark.campaign
@pytest.mark.parametrize("name", RANDOM)
def test_it_finds_the_best_of_a_small_space(name):
    best = max(rate(p) or 0 for p in SPACE.allowed())
    found = [max(rate(p) or 0 for p in search(tuner(name, SPACE, s), 60, 16)) for s in range(2)]
    assert max(found) == best
    assert min(found) >= best / 2


@pytest.mark.campaign
@pytest.mark.parametrize(("name", "count"), [("genetic", 300), ("xgb", 104), ("annealing", 104)])
def test_in_a_large_space_it_does_better_than_chance(name, count):
    def far(point):
        return 1.0 / (1 + np.abs(LARGE.digits([point])[0] - 5).sum())

    def best(chosen, seed):
        made = tuner(chosen, LARGE, seed)
        tried = search(made, count, 48, far)
        assert len(set(tried)) == len(tried)
        assert LARGE.allows(tried).all()
        return max(map(far, tried))

    assert sum(best(name, s) for s in range(2)) > sum(best("random", s) for s in range(2))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "measured", [lambda p: None, lambda p: 5.0], ids=["all fail", "all are equal"]
)
def test_results_that_say_nothing_do_not_stop_it(name, measured):
    tried = search(tuner(name, SPACE, 0), 1000, 16, measured)
    assert sorted(tried) == sorted(SPACE.allowed())


@pytest.mark.parametrize("name", NAMES)
def test_a_space_of_one_point_and_of_none(name):
    one = Space(WORKLOAD, [Knob("tile", (4,))])
    assert search(tuner(name, one, 0), 10, measured=lambda p: 1.0) == [0]
    none = Space(WORKLOAD, [Knob("tile", (4,))], [Filter("never", lambda v: v["tile"] < 4)])
    assert tuner(name, none, 0).propose(8) == ()
    assert tuner(name, Space(WORKLOAD, []), 0).propose(8)[0].point == 0


@pytest.mark.campaign
@pytest.mark.parametrize("name", NAMES)
def test_what_was_observed_before_is_not_proposed(name):
    made = tuner(name, SPACE, 0)
    known = sorted(SPACE.allowed())[:60]
    for point in known:
        made.observe(point, rate(point))
    assert not set(known) & set(search(made, 1000))


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_that_was_not_observed_is_not_proposed_again(name):
    made = tuner(name, SPACE, 0)
    first, second = made.propose(8), made.propose(8)
    assert len({p.point for p in (*first, *second)}) == len(first) + len(second)


SOME_KNOBS = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@settings(max_examples=15, deadline=None)
@given(SOME_KNOBS, st.sampled_from(NAMES), st.integers(0, 5), st.integers(2, 5), st.data())
def test_any_space_is_exhausted_without_a_repetition(sizes, name, seed, modulus, data):
    knobs = [Knob(f"k{n}", tuple(range(size))) for n, size in enumerate(sizes)]
    space = Space(WORKLOAD, knobs, [Filter("f", lambda v: sum(v.values()) % modulus != 1)])
    allowed = list(space.allowed())
    points = None
    if data.draw(st.booleans(), "restricted") and allowed:
        points = data.draw(st.lists(st.sampled_from(allowed), min_size=1, unique=True))
    tried = search(
        tuner(name, space, seed, points=points), 2000, 7,
        lambda p: None if p % 5 == 2 else 1.0 + p % 11,
    )  # fmt: skip
    assert sorted(tried) == sorted(allowed if points is None else points)


def test_an_unknown_tuner_is_refused():
    with pytest.raises(TuningError) as error:
        tuner("xgboost", SPACE, 0)
    assert str(error.value) == (
        "tune: no tuner has this name\n  got       'xgboost'\n"
        f"  expected  {', '.join(map(repr, TUNERS))}\n  hint      did you mean 'xgb'?"
    )


# -- candidates ---------------------------------------------------------------------------------


def test_the_nearest_point_differs_in_the_fewest_knobs():
    given_points = [
        SPACE.index_of(SPACE.config(tile=1, unroll=1, pack=False, order="ij")),
        SPACE.index_of(SPACE.config(tile=8, unroll=8, pack=False, order="ij")),
        SPACE.index_of(SPACE.config(tile=8, unroll=1, pack=True, order="ij")),
    ]
    candidates = Candidates(SPACE, given_points)
    asked = SPACE.index_of(SPACE.config(tile=8, unroll=4, pack=False, order="ij"))
    assert candidates.nearest(asked) == given_points[1]
    assert candidates.nearest(given_points[0]) == given_points[0]
    assert candidates.nearest_untried(asked, {given_points[1]}) != given_points[1]
    assert candidates.nearest_untried(asked, set(given_points)) is None


def test_steps_change_one_knob_and_stay_inside():
    candidates, generator = Candidates(SPACE), np.random.default_rng(0)
    points = candidates.draw(50, generator)
    moved = candidates.step(points, generator)
    assert SPACE.allows(moved).all()
    apart = (SPACE.digits(points) != SPACE.digits(moved)).sum(axis=1)
    assert set(apart.tolist()) <= {0, 1}
    assert apart.mean() > 0.9


def test_steps_among_given_points_end_at_given_points():
    points = sorted(SPACE.allowed())[::5]
    candidates, generator = Candidates(SPACE, points), np.random.default_rng(0)
    at = candidates.draw(20, generator)
    for _ in range(10):
        at = candidates.step(at, generator)
        assert set(at.tolist()) <= set(points)


def test_the_first_points_are_spread_over_the_values_of_each_knob():
    free = Space(WORKLOAD, KNOBS)
    chosen = Candidates(free).spread_out(24, np.random.default_rng(0))
    assert len(set(chosen.tolist())) == 24
    for knob, column in enumerate(free.digits(chosen).T):
        counts = np.bincount(column, minlength=len(free.knobs[knob].values))
        assert counts.max() - counts.min() <= 3


def test_a_large_space_is_not_listed():
    candidates = Candidates(LARGE)
    assert candidates.points is None
    drawn = candidates.draw(100, np.random.default_rng(0), {1, 2})
    assert len(set(drawn.tolist())) == 100
    assert LARGE.allows(drawn).all()


# -- each tuner ---------------------------------------------------------------------------------


def test_the_grid_goes_in_order():
    assert search(tuner("grid", SPACE, 0), 50) == sorted(SPACE.allowed())[:50]
    assert search(tuner("grid", LARGE, 0), 20, measured=lambda p: 1.0)[:3] == [0, 1, 2]


def test_the_genetic_tuner_breeds_from_the_fastest():
    made = GeneticTuner(Candidates(SPACE), 0, population=16)
    first = [p.point for p in made.propose(16)]
    for point in first:
        made.observe(point, rate(point))
    children = made.propose(16)
    assert {p.origin for p in children} <= {"crossover", "mutation"}
    mean = [
        np.mean([rate(p) or 0 for p in points]) for points in (first, [p.point for p in children])
    ]
    assert mean[1] > mean[0]


def test_the_descent_tries_the_neighbours_of_the_best():
    made = DescentTuner(Candidates(SPACE), 0)
    start = SPACE.index_of(SPACE.config(tile=4, unroll=2, pack=False, order="ji"))
    made.observe(start, rate(start))
    batch = made.propose(20)
    assert {p.origin for p in batch} == {"neighbour"}
    apart = SPACE.digits([p.point for p in batch]) - SPACE.digits([start])
    assert np.abs(apart).sum(axis=1).tolist() == [1] * len(batch)
    assert made.walkers == (start,)


def test_the_descent_survives_a_plateau():
    line = Space(WORKLOAD, [Knob("k", tuple(range(40)))])
    made = DescentTuner(Candidates(line), 0)

    def stairs(point):
        return 1.0 + point // 8

    made.observe(3, stairs(3))
    assert max(search(made, 40, 4, stairs)) >= 35


def test_walkers_persist_from_batch_to_batch():
    made = tuner("annealing", LARGE, 0)
    search(made, 8, 8, lambda p: 1.0 + p % 17)
    assert made.walkers == ()
    search(made, 16, 16, lambda p: 1.0 + p % 17)
    first = made.walkers
    assert len(first) == 128
    assert LARGE.allows(first).all()
    search(made, 16, 16, lambda p: 1.0 + p % 17)
    assert made.walkers != first


class Constant:
    """Likes points with large numbers."""

    name, columns = "constant", ()

    def fit(self, points, rates):
        pass

    def predict(self, points):
        return np.asarray(points, np.float64) / 100

    def spread(self, points):
        return np.zeros(len(points))


def test_walkers_climb_what_the_model_predicts():
    strategy = Strategy(first=0, epsilon=0.0, choice=1, walks=True)
    made = ModelTuner(Candidates(SPACE), 0, Constant(), strategy, knows=True)
    ranked = sorted(SPACE.allowed())[::-1]
    assert {p.point for p in made.propose(4)} <= set(ranked[:8])
    first = made.walkers
    made.propose(4)
    assert np.mean(made.walkers) >= np.mean(first)
    assert np.mean(first) > np.mean(ranked)


def test_a_batch_has_a_random_part():
    made = ModelTuner(Candidates(SPACE), 0, Constant(), Strategy(first=0, epsilon=0.25, choice=1))
    made.observe(0, 1.0)
    batch = made.propose(8)
    ranked = sorted(SPACE.allowed())[::-1][:6]
    assert [p.point for p in batch[:6]] == ranked
    assert [p.origin for p in batch] == ["model"] * 6 + ["random"] * 2
    assert len({p.point for p in batch}) == 8
    assert batch[0].predicted_s == pytest.approx(2 ** -(ranked[0] / 100))


def test_what_is_expected_is_said():
    made = tuner("xgb", SPACE, 0)
    search(made, 40)
    for proposal in made.propose(8):
        assert proposal.predicted_s > 0
        assert proposal.spread >= 0
    assert made.model.name == "xgb"


def test_similar_points_make_room_for_others():
    def values(choice):
        strategy = Strategy(first=0, epsilon=0.0, choice=choice)
        made = ModelTuner(Candidates(SPACE), 0, Constant(), strategy)
        made.observe(0, 1.0)
        digits = SPACE.digits([p.point for p in made.propose(6)])
        return sum(len(set(column)) for column in digits.T.tolist())

    assert values(8.0) > values(1.0)


def test_experience_comes_before_measurements():
    small = Space(Workload.of("x", n=2), KNOBS)
    points = list(range(small.size))
    known = experience_of(
        KnobFeatures(SPACE).columns,
        [(KnobFeatures(small), points, [rate(p, small) for p in points])],
    )
    batch = tuner("xgb", SPACE, 0, experience=known).propose(16)
    assert np.mean([rate(p.point) or 0 for p in batch]) > 3 * np.mean(
        [rate(p) or 0 for p in SPACE.allowed()]
    )


class Traffic:
    """The larger the tile, the fewer cycles."""

    columns = ("tile", "program.memory cycles", "program.roofline cycles")

    def rows(self, points):
        tiles = np.array([SPACE.at(int(p)).tile for p in points])
        cycles = np.log2(1 + 1e9 / tiles)
        return np.stack([tiles, cycles, cycles], axis=1).astype(np.float32)


def test_the_roofline_ranks_before_anything_was_measured():
    made = tuner("roofline", SPACE, 0, features=Traffic())
    assert made.model.columns == ("program.memory cycles", "program.roofline cycles")
    assert {SPACE.at(p.point).tile for p in made.propose(8)} == {32}
    assert sorted(search(made, 1000)) != []


def test_without_limits_there_is_no_roofline_and_it_says_so():
    made = tuner("roofline", SPACE, 0)
    assert made.note == "points are drawn at random: the features tell no limits of a roofline"
    assert len(search(made, 30)) == 30


def test_without_xgboost_a_ridge_model_is_used(monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    made = tuner("xgb", SPACE, 0)
    assert made.note.startswith("a ridge model is used: xgboost is not installed")
    assert made.model.name == "ridge"
    assert len(search(made, 40)) == 40


def test_a_tuner_without_a_model_has_none():
    made = BaseTuner(Candidates(SPACE), 0)
    assert made.model is None
    assert made.walkers == ()


def test_a_model_can_be_given_to_a_tuner_of_ones_own():
    model = make_model("ridge", KnobFeatures(SPACE), 0)
    made = ModelTuner(Candidates(SPACE), 0, model, Strategy(acquisition="improvement"))
    assert len(set(search(made, 60))) == 60
