"""Templates run with knobs that remember what was asked of them."""

import dataclasses

import pytest

from dlcompiler import ops, te
from dlcompiler.autotune.features.numbers import Graph, Number
from dlcompiler.autotune.features.tracing import Traced, TracedConfig, Tracer, trace
from dlcompiler.schedule.symbolic_schedule import symbolic_schedule
from dlcompiler.space import Knob, Space, Workload
from dlcompiler.target import resolve

TARGET = dataclasses.replace(resolve("x86-64-avx2"), cores=2)
SPACE = Space(
    Workload.of("x"),
    [Knob("tile", (2, 4, 8)), Knob("order", ("ij", "ji")), Knob("pack", (False, True)),
     Knob("only", (3,))],
)  # fmt: skip


@pytest.fixture
def tracer():
    return Tracer(Graph())


@pytest.fixture
def cfg(tracer):
    return TracedConfig(SPACE, SPACE.config(tile=4, order="ji", pack=True, only=3), tracer)


def test_arithmetic_decides_nothing(tracer, cfg):
    value = (2 * cfg["tile"] + 1) // 3 - cfg.tile % 3
    assert isinstance(value, Traced)
    assert value.value == 2
    assert isinstance(value.node, Number)
    assert tracer.decisions == []
    assert cfg["only"] == 3
    assert tracer.decisions == []


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda c: c["tile"] > 2, True),
        (lambda c: c["tile"] <= 2, False),
        (lambda c: c["tile"] == 8, False),
        (lambda c: bool(c["tile"] - 4), False),
        (lambda c: c["order"] == "ij", False),
        (lambda c: bool(c["pack"]), True),
        (lambda c: c["tile"] in (4, 8), True),
        (lambda c: min(c["tile"], 3) == 3, True),
        (lambda c: [10, 11, 12, 13, 14][c["tile"]] == 14, True),
        (lambda c: {"ji": True}[c["order"]], True),
    ],
)
def test_questions_are_decisions(tracer, cfg, ask, answer):
    assert ask(cfg) is answer
    assert tracer.decisions


def test_a_question_whose_answer_is_always_the_same_is_none(tracer, cfg):
    assert cfg["tile"] < 9
    assert cfg["tile"] * 2 >= 4
    assert tracer.decisions == []


def test_match_and_membership(tracer, cfg):
    match cfg["order"]:
        case "ij":
            found = 0
        case "ji":
            found = 1
    assert found == 1
    assert "pack" in cfg
    assert "absent" not in cfg
    assert list(cfg) == ["tile", "order", "pack", "only"]


def test_a_sketch_takes_symbols_where_a_schedule_refuses_them(tracer, cfg):
    A = te.placeholder((64, 48), name="A")
    B = te.compute((64, 48), lambda i, j: A[i, j] + 1, name="B")
    C = te.compute((64, 48), lambda i, j: B[i, j] * 2, name="C")
    s = symbolic_schedule((C,))
    panel, _, _ = s[B].transform_layout(lambda i, j: [j // cfg["tile"], i, j % cfg["tile"]])
    outer, _ = s[C].split(C.op.axis[1], cfg["tile"])
    s[C].reorder(outer, C.op.axis[0])
    s[B].compute_at(s[C], outer)
    assert str(panel.extent) == "(48 + (knob0 - 1)) // knob0"
    assert list(tracer.symbols.values()) == [cfg["tile"].node]
    assert tracer.decisions == []


def test_points_of_one_skeleton_decide_alike():
    operator = ops.operator("matmul")
    workload = operator.workload(m=64, n=64, k=64)
    space = operator.space(workload, TARGET)
    values = {"tile_m": 4, "tile_n": 16, "unroll_k": 1, "form": "tiles", "pack": True,
              "pack_a": False, "panel": 2, "block": 0, "parallel": ""}  # fmt: skip
    graph = Graph()

    def decided(**changed):
        point = space.index_of(space.config(**{**values, **changed}))
        return trace(operator, workload, TARGET, space, point, graph).decisions

    first = decided()
    assert decided(tile_m=6, tile_n=8, unroll_k=2, panel=4) == first
    assert decided(pack=False) != first
    assert decided(panel=0) != first
