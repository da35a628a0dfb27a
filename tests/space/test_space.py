"""Spaces: numbering, configs by name, fingerprints, filters and samples."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlcompiler.errors import TuningError
from dlcompiler.space import Config, Filter, Knob, Space, Workload, divisors, split_knob

WORKLOAD = Workload.of("matmul", m=8, n=8, k=8, dtype="float32")
KNOBS = (Knob("tile", (1, 2, 4)), Knob("pack", (False, True)), Knob("order", ("ij", "ji")))


def space(filters=()):
    return Space(WORKLOAD, KNOBS, filters)


def even_only():
    return space(
        [Filter("tiles of one row are not packed", lambda v: v["tile"] > 1 or not v["pack"])]
    )


# -- workloads ----------------------------------------------------------------------------------


def test_a_workload_compares_by_value_and_survives_json():
    read = Workload.from_json(json.loads(json.dumps(WORKLOAD.to_json())))
    assert read == WORKLOAD
    assert hash(read) == hash(WORKLOAD)
    assert read["dtype"] == "float32"


def test_the_order_of_parameters_does_not_matter():
    assert Workload.of("x", a=1, b=2) == Workload.of("x", b=2, a=1)
    assert len({Workload.of("x", a=1, b=2), Workload.of("x", b=2, a=1)}) == 1
    assert Workload.of("x", a=1) != Workload.of("y", a=1)


@pytest.mark.parametrize("data", [None, {}, {"op": 1, "params": {}}, {"op": "x", "params": []}])
def test_what_is_not_a_workload_is_refused(data):
    with pytest.raises(TuningError, match="not a workload"):
        Workload.from_json(data)


@pytest.mark.parametrize("value", [True, 1.5, None, [1]])
def test_parameters_are_numbers_or_names(value):
    with pytest.raises(TuningError, match="neither a number nor a name"):
        Workload.of("matmul", m=value)


# -- knobs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "problem"),
    [
        ("tile m", (1,), "not an identifier"),
        ("tile", (), "no values"),
        ("tile", (1, 1), "given twice"),
        ("tile", (1.5,), "not data"),
    ],
)
def test_knobs_that_make_no_sense_are_refused(name, values, problem):
    with pytest.raises(TuningError, match=problem):
        Knob(name, values)


def test_true_is_not_one():
    knob = Knob("choice", (1, True))
    assert (knob.index(1), knob.index(True)) == (0, 1)
    assert not Knob("pack", (False, True)).has(1)


def test_split_knobs():
    assert split_knob("f", 12).values == (1, 2, 3, 4, 6, 12)
    assert split_knob("f", 12, largest=5).values == (1, 2, 3, 4)
    assert split_knob("f", 5, (2, 4, 8)).values == (2, 4)
    assert split_knob("f", 1, (2, 4)).values == (2,)
    assert split_knob("f", 0).values == (1,)
    assert divisors(1) == (1,)


# -- numbering ----------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_every_index_and_its_config_belong_together(sizes):
    knobs = [Knob(f"k{n}", tuple(range(size))) for n, size in enumerate(sizes)]
    numbered = Space(WORKLOAD, knobs)
    configs = [numbered.at(index) for index in range(numbered.size)]
    assert len(set(configs)) == numbered.size
    assert [numbered.index_of(config) for config in configs] == list(range(numbered.size))


def test_the_first_knob_is_the_fastest():
    assert space().at(1) == space().config(tile=2, pack=False, order="ij")


@pytest.mark.parametrize("index", [-1, 12])
def test_an_index_outside_is_refused(index):
    with pytest.raises(TuningError, match="outside the space"):
        space().at(index)


def test_two_knobs_of_one_name_are_refused():
    with pytest.raises(TuningError, match="same name"):
        Space(WORKLOAD, [Knob("a", (1,)), Knob("a", (2,))])


# -- configs ------------------------------------------------------------------------------------


def test_a_config_is_read_by_name():
    config = space().config(tile=4, pack=True, order="ji")
    assert (config["tile"], config.pack, config.order) == (4, True, "ji")
    assert repr(config) == "Config(tile=4, pack=True, order='ji')"
    with pytest.raises(TuningError, match="there is no such knob"):
        config["tiles"]
    with pytest.raises(AttributeError, match="the knobs are: tile, pack, order"):
        config.tiles  # noqa: B018


def test_a_config_survives_json():
    config = space().at(7)
    assert Config.from_json(json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.parametrize(
    "data",
    [None, 3, {}, {"values": {"a": 1.5}, "fingerprint": "x"}, {"values": [], "fingerprint": ""}],
)
def test_what_is_not_a_config_is_refused(data):
    with pytest.raises(TuningError, match="not a config"):
        Config.from_json(data)


def test_a_config_needs_a_known_value_for_every_knob():
    with pytest.raises(TuningError) as error:
        space().config(tile=3, pack=True, order="ij")
    assert str(error.value) == (
        "knob tile: not one of its values\n  got       3\n  expected  1, 2, 4"
    )
    with pytest.raises(TuningError, match="not a value for each knob"):
        space().config(tile=1)


def test_a_config_of_another_space_is_refused():
    wider = Space(WORKLOAD, [Knob("tile", (8, 1, 2, 4)), *KNOBS[1:]])
    config = space().config(tile=2, pack=True, order="ij")
    with pytest.raises(TuningError) as error:
        wider.adopt(config)
    assert str(error.value) == (
        "read a config: it belongs to another space\n"
        f"  got       fingerprint {config.fingerprint}\n"
        f"  expected  {wider.fingerprint}\n"
        "  because   the knobs or their values have changed since\n"
        "  hint      space.adopt(config, remap=True) takes its values by name"
    )
    with pytest.raises(TuningError, match="another space"):
        wider.index_of(config)


def test_a_config_is_remapped_by_name_never_by_position():
    wider = Space(WORKLOAD, [Knob("tile", (8, 1, 2, 4)), KNOBS[2], KNOBS[1]])
    old = space().config(tile=2, pack=True, order="ij")
    new = wider.adopt(old, remap=True)
    assert dict(new.values) == dict(old.values)
    assert wider.index_of(new) != space().index_of(old)


def test_a_remap_needs_every_value():
    narrower = Space(WORKLOAD, [Knob("tile", (1, 4)), *KNOBS[1:]])
    with pytest.raises(TuningError, match="not one of its values"):
        narrower.adopt(space().config(tile=2, pack=True, order="ij"), remap=True)
    other = Space(WORKLOAD, KNOBS[:2])
    with pytest.raises(TuningError, match="not a value for each knob"):
        other.adopt(space().at(0), remap=True)


def test_the_fingerprint_sees_names_values_order_and_rules():
    different = [
        space(),
        even_only(),
        Space(WORKLOAD, KNOBS[::-1]),
        Space(WORKLOAD, [Knob("tile", (1, 4, 2)), *KNOBS[1:]]),
        Space(WORKLOAD, [Knob("tiles", (1, 2, 4)), *KNOBS[1:]]),
        Space(Workload.of("conv2d", m=8), KNOBS),
    ]
    assert len({item.fingerprint for item in different}) == len(different)
    assert space().fingerprint == space().fingerprint


# -- filters and samples ------------------------------------------------------------------------


def test_filters_leave_out_combinations():
    filtered = even_only()
    assert len(list(filtered.allowed())) == 10
    with pytest.raises(TuningError) as error:
        filtered.config(tile=1, pack=True, order="ij")
    assert "expected  tiles of one row are not packed" in str(error.value)


def test_a_sample_has_no_point_twice_and_keeps_the_rules():
    filtered = even_only()
    drawn = filtered.sample(100, seed=3, exclude=[0])
    assert len(drawn) == len(set(drawn)) == 9
    assert set(drawn) == set(filtered.allowed()) - {0}


def test_equal_seeds_give_equal_samples():
    assert space().sample(5, seed=1) == space().sample(5, seed=1)
    assert space().sample(5, seed=1) != space().sample(5, seed=2)
    generator = random.Random(1)
    assert space().sample(5, generator) != space().sample(5, generator)


def test_a_large_space_is_sampled_without_listing_it():
    knobs = [Knob(f"k{n}", tuple(range(10))) for n in range(12)]
    large = Space(WORKLOAD, knobs, [Filter("k0 is even", lambda v: v["k0"] % 2 == 0)])
    drawn = large.sample(50, seed=0)
    assert len(set(drawn)) == 50
    assert all(large.at(index).k0 % 2 == 0 for index in drawn)


def test_a_large_space_that_allows_nothing_gives_nothing():
    knobs = [Knob(f"k{n}", tuple(range(10))) for n in range(12)]
    assert Space(WORKLOAD, knobs, [Filter("never", lambda v: False)]).sample(3, seed=0) == ()


# -- many points at once ------------------------------------------------------------------------

MANY = Space(
    WORKLOAD,
    [Knob("a", (1, 2, 4, 8)), Knob("b", ("x", "y", "z")), Knob("c", (1, 2, 3)), Knob("d", (0, 1))],
    [
        Filter("a large a goes with x", lambda v: v["a"] < 4 or v["b"] == "x"),
        Filter("c fits a, unless it is y", lambda v: v["b"] == "y" or v["c"] <= v["a"]),
        Filter("always", lambda v: True),
    ],
)


def _by_hand(config):
    return all(item.allows(config.values) for item in MANY.filters)


def test_filters_answer_for_many_points_as_for_each():
    expected = [_by_hand(MANY.at(point)) for point in range(MANY.size)]
    assert MANY.allows(range(MANY.size)).tolist() == expected
    assert list(MANY.allowed()) == [n for n, is_allowed in enumerate(expected) if is_allowed]


@given(st.lists(st.integers(0, MANY.size - 1)))
def test_filters_answer_in_any_order(points):
    fresh = Space(WORKLOAD, MANY.knobs, MANY.filters)
    assert fresh.allows(points).tolist() == [_by_hand(MANY.at(point)) for point in points]


def test_a_filter_is_asked_once_for_what_it_reads():
    asked = []

    def allows(values):
        asked.append((values["k0"], values["k1"]))
        return values["k0"] != values["k1"]

    knobs = [Knob(f"k{n}", tuple(range(8))) for n in range(6)]
    large = Space(WORKLOAD, knobs, [Filter("differ", allows)])
    assert large.count.value == 8**6 * 7 // 8
    assert len(asked) <= 8 * 8 + 1


def test_digits_and_points():
    digits = MANY.digits([0, 5, MANY.size - 1])
    assert digits.tolist() == [[0, 0, 0, 0], [1, 1, 0, 0], [3, 2, 2, 1]]
    assert MANY.points_of(digits).tolist() == [0, 5, MANY.size - 1]
    assert Space(WORKLOAD, ()).digits([0]).shape == (1, 0)


def test_neighbours_differ_in_one_knob_and_keep_the_rules():
    for point in MANY.allowed():
        own = MANY.digits([point])[0]
        expected = {
            other for other in MANY.allowed() if (MANY.digits([other])[0] != own).sum() == 1
        }
        found = MANY.neighbours(point)
        assert set(found) == expected
        assert len(found) == len(expected)


def test_a_count_is_exact_or_an_interval():
    assert str(MANY.count) == str(len(list(MANY.allowed())))
    assert space().count.value == 12
    knobs = [Knob(f"k{n}", tuple(range(10))) for n in range(12)]
    count = Space(WORKLOAD, knobs, [Filter("even", lambda v: v["k0"] % 2 == 0)]).count
    assert not count.is_exact
    assert count.low <= 5 * 10**11 <= count.high
    assert str(count).startswith("about ")


def test_more_points_than_numbers_are_refused():
    with pytest.raises(TuningError, match="there are too many"):
        Space(WORKLOAD, [Knob(f"k{n}", tuple(range(100))) for n in range(10)])


# -- tuples -------------------------------------------------------------------------------------


def test_a_value_may_be_a_tuple():
    split = Space(WORKLOAD, [Knob("tile", ((8, 1), (4, 2))), Knob("order", (("i", "j"),))])
    config = split.config(tile=(4, 2), order=("i", "j"))
    read = Config.from_json(json.loads(json.dumps(config.to_json())))
    assert read == config
    assert split.adopt(read) == config
    assert split.config(tile=[4, 2], order=["i", "j"]) == config


@pytest.mark.parametrize("value", [(1, "a"), (1, 2.0), (True,), ((1,),), [1, 2]])
def test_other_tuples_are_refused(value):
    with pytest.raises(TuningError, match="a value is not data"):
        Knob("tile", (value,))
