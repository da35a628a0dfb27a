"""Knobs that a template declares: ways to split, reorder and annotate; what they do to loops."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlcompiler import te
from dlcompiler.errors import TuningError
from dlcompiler.pipeline import lower
from dlcompiler.space import Choosing, Declaring, Knob, VirtualAxis, Workload
from dlcompiler.space.choices import loop_annotations, loop_orders, split_sizes

WORKLOAD = Workload.of("x", n=1)


# -- the ways -----------------------------------------------------------------------------------


@given(st.integers(1, 60), st.integers(1, 4), st.sampled_from(["factors", "power2", "verbose"]))
def test_splits_cover_the_loop(extent, outputs, policy):
    ways = split_sizes(extent, outputs, policy)
    assert len(set(ways)) == len(ways) > 0
    for first, *inner in ways:
        assert (first, len(inner)) == (-1, outputs - 1)
        assert math.prod(inner) <= extent
        assert policy != "factors" or extent % math.prod(inner) == 0


def test_splits_are_in_the_order_of_autotvm():
    assert split_sizes(4, 3) == (
        (-1, 1, 1), (-1, 2, 1), (-1, 4, 1), (-1, 1, 2), (-1, 2, 2), (-1, 1, 4),
    )  # fmt: skip


def test_split_policies():
    assert [way[-1] for way in split_sizes(12, 2)] == [1, 2, 3, 4, 6, 12]
    assert [way[-1] for way in split_sizes(12, 2, "power2")] == [1, 2, 4, 8]
    assert [way[-1] for way in split_sizes(12, 2, "verbose")] == [1, 2, 3, 4, 6, 8, 12]
    assert [way[-1] for way in split_sizes(12, 2, "verbose", no_tail=True)] == [1, 2, 3, 4, 6, 12]
    assert [way[-1] for way in split_sizes(12, 2, max_factor=4)] == [1, 2, 3, 4]
    assert split_sizes(12, 2, "candidate", candidate=[[3, 4], [-1, 6]]) == ((3, 4), (-1, 6))
    assert split_sizes(0, 2) == ((-1, 1),)


def test_orders():
    assert loop_orders(3, "identity") == ((0, 1, 2),)
    assert len(set(loop_orders(4, "all"))) == 24
    assert loop_orders(4, "interval_all", interval=(1, 3)) == ((0, 1, 2, 3), (0, 2, 1, 3))
    assert loop_orders(2, "candidate", candidate=[(1, 0)]) == ((1, 0),)
    chains = {"spatial": [(0, 2, 4), (1, 3, 5)], "reduce": [(6, 7)]}
    assert loop_orders(8, "interleave", **chains) == ((0, 1, 2, 3, 6, 4, 5, 7),)
    assert loop_orders(8, "interleave_cuda", **chains) == ((0, 1, 2, 3, 6, 7, 4, 5),)


def test_annotations():
    assert loop_annotations(1, "try_unroll_vec") == (("none",), ("unroll",), ("vec",))
    assert all(way.count("vec") <= 1 for way in loop_annotations(3, "try_unroll_vec"))
    assert len(loop_annotations(3, "try_unroll_vec")) == 27 - 7
    assert loop_annotations(2, "unroll") == (("unroll", "unroll"),)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: split_sizes(8, 0), "num_outputs is not a positive number"),
        (lambda: split_sizes(8, 2, "all"), "no such policy"),
        (lambda: split_sizes(8, 2, "candidate", candidate=[[2]]), "not a size for each loop"),
        (lambda: split_sizes(8, 2, "candidate", candidate=[[4, 0]]), "not a size for each loop"),
        (lambda: split_sizes(720720, 6), "there are too many ways"),
        (lambda: loop_orders(3, "any"), "no such policy"),
        (lambda: loop_orders(3, "interval_all", interval=(1, 4)), "not an interval of them"),
        (lambda: loop_orders(12, "all"), "there are too many orders"),
        (lambda: loop_orders(2, "candidate", candidate=[(0, 0)]), "not an order of them"),
        (lambda: loop_annotations(2, "try_bind"), "no such policy"),
        (lambda: loop_annotations(2, "bind_gpu"), "bind_gpu is for GPUs"),
        (lambda: loop_annotations(2, "locate_cache"), "num_anchor is not a number"),
        (lambda: loop_annotations(12, "try_unroll_vec"), "there are too many ways"),
    ],
)
def test_ways_that_make_no_sense_are_refused(make, problem):
    with pytest.raises(TuningError, match=problem):
        make()


# -- declaring and choosing ---------------------------------------------------------------------


def _computation():
    A = te.placeholder((12, 20), name="A")
    B = te.compute((12, 20), lambda i, j: A[i, j] + 1.0, name="B")
    return te.create_schedule(B.op), B


def _template(cfg):
    s, B = _computation()
    i, j = B.op.axis
    outer = cfg.define_split("tile", j, num_outputs=3, policy="candidate", candidate=[[-1, 2, 4]])
    cfg.define_reorder("order", [i, *outer], "candidate", candidate=[[outer[0], i, *outer[1:]]])
    cfg.define_annotate("ann", outer[1:], "try_unroll_vec")
    cfg.define_knob("option", ["a", "b"])
    loops = cfg["tile"].apply(s, B, j)
    cfg["order"].apply(s, B, [i, *loops])
    cfg["ann"].apply(s, B, loops[1:])
    return s, B


def test_a_config_does_to_loops_what_it_says():
    cfg = Declaring()
    _template(cfg)
    space = cfg.space(WORKLOAD)
    chosen = space.config(tile=(-1, 2, 4), order=(1, 0, 2, 3), ann=("unroll", "vec"), option="b")
    s, B = _template(Choosing(chosen))
    loops = s[B].leaf_iter_vars
    assert [loop.extent for loop in loops] == [3, 12, 2, 4]
    assert [loop.var.name for loop in loops][:2] == ["j.outer", "i"]
    kinds = [s[B].state.kinds.get(loop, "serial") for loop in loops]
    assert kinds == ["serial", "serial", "unrolled", "vectorized"]


def test_while_declared_each_knob_has_its_first_value():
    cfg = Declaring()
    _template(cfg)
    assert list(cfg) == ["tile", "order", "ann", "option"]
    assert repr([cfg[name] for name in cfg]) == "[[-1, 2, 4], [1, 0, 2, 3], ['none', 'none'], a]"
    cfg.raise_error("is not heard")
    assert Choosing(cfg.space(WORKLOAD).at(0))["option"].val == "a"


def test_stages_are_attached_where_the_config_says():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((8, 8), lambda i, j: B[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    cfg = Declaring()
    cfg.define_annotate("at", C.op.axis, "locate_cache", num_anchor=1)
    space = cfg.space(WORKLOAD)
    assert [knob.values for knob in space.knobs] == [((0,), (1,))]
    chosen = Choosing(space.config(at=(1,)))
    chosen.define_annotate("at", C.op.axis, "locate_cache", num_anchor=1)
    chosen["at"].apply(s, C, C.op.axis, source=[[B]])
    assert "for j in range(8):\n            allocate B" in str(lower(s, [A, C], simple_mode=True))


def test_a_knob_may_be_declared_twice_alike():
    cfg = Declaring()
    cfg.define_knob("k", [1, 2])
    cfg.define_knob("k", [1, 2])
    assert cfg.space(WORKLOAD).knobs == (Knob("k", (1, 2)),)
    with pytest.raises(TuningError, match="declared before, with other values"):
        cfg.define_knob("k", [1, 2, 3])


def test_rules_are_on_entities_and_named():
    cfg = Declaring()
    cfg.define_split("x", 8, num_outputs=2)
    cfg.define_split("y", 8, num_outputs=2)
    cfg.multi_filter(lambda e: e["x"].size[-1] * e["y"].size[-1] <= 8, "small tiles")
    cfg.multi_filter(lambda e: len(e) == 2)
    space = cfg.space(WORKLOAD)
    assert [item.rule for item in space.filters] == ["small tiles", "rule 2 of the template"]
    assert space.count.value == 10


def test_flops_are_added_up():
    cfg = Declaring()
    cfg.add_flop(10)
    cfg.add_flop(2.5)
    assert cfg.flops == 12.5


@pytest.mark.parametrize(
    ("declare", "problem"),
    [
        (lambda cfg: cfg.define_split("x", te.var("n")), "the extent of a loop is not a number"),
        (lambda cfg: cfg.define_split("x", VirtualAxis(None)), "made by another knob's split"),
        (lambda cfg: cfg.define_split("x", 8, filter=lambda e: False), "no values to choose"),
        (lambda cfg: cfg.define_knob("x", [0.5]), "a value is not data"),
        (lambda cfg: cfg.define_knob("x y", [1]), "the name is not an identifier"),
        (lambda cfg: cfg["x"], "the template has not declared it"),
        (
            lambda cfg: cfg.define_reorder("x", ["a"], "candidate", candidate=[["b"]]),
            "a loop is not among those it orders",
        ),
    ],
)
def test_declarations_that_make_no_sense_are_refused(declare, problem):
    with pytest.raises(TuningError, match=problem):
        declare(Declaring())


def test_a_config_of_another_space_is_refused():
    cfg = Declaring()
    cfg.define_knob("k", [1])
    with pytest.raises(TuningError, match="the template has not declared it"):
        Choosing(cfg.space(WORKLOAD).at(0)).define_knob("other", [1])


def test_a_config_that_a_template_refuses():
    cfg = Declaring()
    cfg.define_knob("k", [1])
    with pytest.raises(TuningError, match="too much"):
        Choosing(cfg.space(WORKLOAD).at(0)).raise_error("too much")
