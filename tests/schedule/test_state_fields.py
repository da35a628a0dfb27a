"""What lists the fields of a state by name: a field that is added later must not be forgotten."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace

import pytest

from dlcompiler import te
from dlcompiler.ir import Axis
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.inference.bounds import infer_bounds
from dlcompiler.schedule.inference.inlining import bodies
from dlcompiler.schedule.legality import validity
from dlcompiler.schedule.legality.obligations import (
    has_bounds,
    obligations,
    obligations_without_bounds,
)
from dlcompiler.schedule.primitives import transform_layout
from dlcompiler.schedule.primitives.transform_layout import MOVED
from dlcompiler.schedule.state import KEPT, NOTES, StageState, State
from tests.fuzz.expressions import random_expression
from tests.fuzz.threads import ThreadWalk
from tests.fuzz.walks import Walk

FIELDS = {field.name for field in fields(StageState) if field.init}
SEEDS = range(40)


def schedules(walk):
    for seed in SEEDS:
        expression = random_expression(random.Random(f"fields {seed}"))
        schedule = create_schedule([tensor.op for tensor in expression.outputs])
        walk(random.Random(f"fields {seed}"), schedule).run(10)
        yield schedule


# -- what is checked again ------------------------------------------------------------------------


class Looked(Exception):
    """Says that a state was looked at."""


def look(_state):
    raise Looked


@pytest.mark.parametrize("name", sorted(FIELDS - NOTES - {"name"}))
def test_a_step_that_changes_any_field_is_checked(chain, monkeypatch, name):
    old = chain.s.state
    new = old.with_stage(replace(old.stage("P"), **{name: object()}), "next")
    monkeypatch.setattr(validity, "placed", look)
    with pytest.raises(Looked):
        list(validity.problems(new, old))


@pytest.mark.parametrize("name", sorted(NOTES))
def test_notes_are_not_checked(chain, monkeypatch, name):
    old = chain.s.state
    new = old.with_stage(replace(old.stage("P"), **{name: {}}), "next")
    monkeypatch.setattr(validity, "placed", look)
    assert not list(validity.problems(new, old))


# -- what is kept from one state to the next ------------------------------------------------------


@pytest.mark.campaign
@pytest.mark.parametrize("walk", [Walk, ThreadWalk])
def test_what_a_state_keeps_of_the_one_before_is_what_it_would_compute(walk):
    for schedule in schedules(walk):
        for node in schedule.history.history.walk():
            kept = {name: node.state.cache[name] for name in KEPT if name in node.state.cache}
            fresh = State(node.state.id, node.state.stages)
            computed = {
                "bodies": bodies,
                "obligations": obligations,
                "obligations without bounds": obligations_without_bounds,
            }
            for name, compute in computed.items():
                if name in kept:
                    assert str(compute(fresh)) == str(kept[name])
            if "bounds" in kept and has_bounds(fresh):
                assert _text(infer_bounds(fresh)) == _text(kept["bounds"])
    assert set(KEPT) == {*computed, "bounds"}


def _text(bounds) -> list[str]:
    return [
        f"{name} {[(str(span.first.to_expr()), str(span.extent)) for span in known.region]} "
        f"{list(map(str, known.extents.values()))} {list(map(str, known.guards))} "
        f"{list(map(str, known.values.values()))}"
        for name, known in bounds.stages.items()
    ]


# -- what refers to axes --------------------------------------------------------------------------


def axes_in(value: object) -> Iterator[Axis]:
    """Yield the axes that a value of a field refers to."""
    match value:
        case Axis():
            yield value
        case Mapping():
            for key, item in value.items():
                yield from axes_in(key)
                yield from axes_in(item)
        case tuple():
            for item in value:
                yield from axes_in(item)
        case _ if is_dataclass(value) and type(value).__module__ == StageState.__module__:
            for field in fields(value):
                yield from axes_in(getattr(value, field.name))


OTHERS = {"attachment", "group"}
"""Fields that refer to axes of other stages."""


@pytest.mark.parametrize("walk", [Walk, ThreadWalk])
def test_no_field_refers_to_an_axis_that_its_stage_does_not_have(walk):
    for schedule in schedules(walk):
        for node in schedule.history.history.walk():
            for stage in node.state.stages:
                for name in FIELDS - OTHERS:
                    assert set(axes_in(getattr(stage, name))) <= set(stage.paths), (stage, name)


def test_the_thread_that_stores_goes_with_the_reduction():
    A = te.placeholder((4, 64), name="A")
    k = te.reduce_axis((0, 64), name="k")
    C = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="C")
    s = create_schedule(C.op)
    s[C].bind(s[C].split(k, 8)[1], te.thread_axis("threadIdx.x"))
    s[C].set_store_predicate("threadIdx.x == 3")
    CL = s.cache_write(C, "shared")
    assert s[CL].state.storing == {"threadIdx.x": 3}
    assert not s[C].state.storing


@pytest.mark.parametrize("name", sorted(FIELDS - MOVED))
def test_what_a_layout_cannot_take_along_is_refused(chain, name):
    stage = replace(chain.s.state.stage("P"), **{name: "anything"})
    verdict = transform_layout.check(chain.s.state, stage, index_map=lambda i: [i // 2, i % 2])
    assert verdict.reason == "the loops of P or its strides have been changed already"
