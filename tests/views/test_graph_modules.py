"""What a module of a graph shows of itself: its kernels as a picture, its decisions as a table."""

import itertools
import re

import pytest

from dlcompiler import graph
from dlcompiler.errors import GraphError
from dlcompiler.graph import builders, op
from dlcompiler.graph.passes import fuse_ops
from dlcompiler.graph.passes.pipeline import optimize
from dlcompiler.views.graphs.folding import MOST_BESIDE, MOST_LAYERS, folded
from dlcompiler.views.graphs.module_card import LONGEST, graph_scene, module_card
from dlcompiler.views.graphs.units import Unit, units_of

HOSTILE = '"><img src=x onerror=alert(1)>'


def units(module):
    return units_of(module, module.main)


def overlap(a, b):
    return (
        a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"]
        and a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"]
    )  # fmt: skip


def crosses(path, rect):
    """Tell whether the line of an arrow passes a box, by points on its curves."""
    at = None
    for command, numbers in re.findall(r"([MCL])([-\d. ]+)", path["d"]):
        n = [float(number) for number in numbers.split()]
        if command == "C":
            (x0, y0), (x1, y1, x2, y2, x3, y3) = at, n
            for step in range(1, 20):
                t = step / 20
                a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
                x, y = a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3
                if rect["x"] < x < rect["x"] + rect["w"] and rect["y"] < y < rect["y"] + rect["h"]:
                    return True
        elif command == "L" and rect["x"] < n[0] < rect["x"] + rect["w"]:
            low, high = sorted((at[1], n[1]))
            if low < rect["y"] + rect["h"] and rect["y"] < high:
                return True
        at = n[-2], n[-1]
    return False


MODELS = {
    "mlp": lambda: builders.mlp(),
    "resnet": lambda: builders.resnet(18, image=32, classes=10),
    "lstm": lambda: builders.lstm(steps=6, width=8, vocabulary=10),
    "inception": lambda: builders.inception(channels=8, image=7),
}


@pytest.mark.campaign
@pytest.mark.parametrize("is_fused", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_no_box_is_hidden_and_no_arrow_crosses_one(name, is_fused):
    module = MODELS[name]().module
    module = optimize(module) if is_fused else module
    scene = graph_scene(units(module), "main")
    boxes = [mark for mark in scene["marks"] if mark["shape"] == "rect"]
    assert not any(overlap(a, b) for a, b in itertools.combinations(boxes, 2))
    arrows = [mark for mark in scene["marks"] if mark["shape"] == "path"]
    assert arrows
    assert not any(crosses(arrow, box) for arrow in arrows for box in boxes)
    assert all(b["x"] + b["w"] <= scene["width"] for b in boxes)
    assert all(b["y"] + b["h"] <= scene["height"] for b in boxes)


def test_the_kernels_of_a_model(parsed):
    module = optimize(builders.mlp().bound)
    card = module_card(module)
    assert card["text"] == "10 calls in 5 kernels, 3 of them fused"
    assert dict(card["facts"])["constants and weights"] == "read 6 times, 427 KiB in all"
    rows = {row[0]: row for row in card["scene"]["table"]["rows"]}
    assert rows["fc1+fc1_add+relu1"] == [
        "fc1+fc1_add+relu1", "nn.dense, add, nn.relu", "float32[1, 128]", "flatten",
    ]  # fmt: skip
    texts = [mark["text"] for mark in card["scene"]["marks"] if mark["shape"] == "text"]
    assert "reads 2 weights, 392 KiB" in texts
    assert "returns float32[1, 10]" in texts
    filled = [m for m in card["scene"]["marks"] if m.get("fill", "none") != "none"]
    assert len(filled) == 3
    parsed(module._repr_html_())


def test_decisions_say_what_they_save_or_would_save():
    module = optimize(builders.mlp().bound)
    (_, by_rule), (_, each) = module_card(module)["tables"]
    assert ["fuse_ops", "fused", "elementwise after anchor", 5] in by_rule["rows"]
    rows = {row[1]: row for row in each["rows"]}
    assert rows["fc1 → fc1_add"][2:5] == [
        "fused", "fc1_add needs only the element of fc1 that was just computed",
        "saves 1 kernel, saves 1 KiB moved",
    ]  # fmt: skip
    assert rows["relu1 → fc2"][4] == "would save 1 kernel, would save 1 KiB moved"


def test_many_decisions_are_cut_and_say_so():
    module = optimize(builders.lstm(steps=10, width=8, vocabulary=10).module)
    assert len(module.log) > 300
    rows = module_card(module)["tables"][1][1]["rows"]
    assert len(rows) == 301
    assert rows[-1][:2] == [f"… {len(module.log) - 300} more", "module.decisions() has all"]


def test_tuples_and_lets_are_no_boxes():
    x, y = graph.var("x", (4, 6)), graph.var("y")
    parts = op.split(x, indices_or_sections=2, axis=1, name="parts")
    pair = graph.Tuple((parts[0], op.exp(parts[1], name="exp")))
    module = graph.Module.from_expr(
        graph.Function((x,), graph.Let(y, pair, op.add(y_field(y, 0), y_field(y, 1), name="add")))
    )
    found = {unit.name: [each.name for each in unit.reads] for unit in units(module)}
    assert found == {"x": [], "parts": ["x"], "exp": ["parts"], "add": ["parts", "exp"]}


def y_field(value, index):
    return graph.TupleGetItem(value, index)


def test_branches_and_functions_are_one_box_each():
    x, n = graph.var("x", (3,)), graph.var("n", (), "bool")
    shared = op.exp(x, name="shared")
    chosen = graph.If(n, op.negative(shared), op.add(x, 1.0))
    module = graph.Module.from_expr(
        graph.Function((x, n), op.multiply(chosen, shared, name="product"))
    )
    found = {unit.name: [each.name for each in unit.reads] for unit in units(module)}
    assert found["product"] == ["if", "shared"]
    assert "shared" in found["if"]
    assert "x" in found["if"]
    assert len(found) == 4


def test_a_module_with_wrong_types_shows_itself(parsed):
    x = graph.var("x", (2, 3))
    module = graph.Module({"main": graph.Function((x,), op.add(x, graph.var("y", (4, 5))))})
    with pytest.raises(GraphError):
        graph.types_of(module)
    parsed(module._repr_html_())
    parsed(graph.Module({})._repr_html_())


def test_hostile_and_long_names_are_text(parsed):
    x = graph.var(HOSTILE, (2,))
    module = fuse_ops(graph.Module.from_expr(op.exp(op.negative(x, name=HOSTILE), name="n" * 5000)))
    html = module._repr_html_()
    assert "<img src=x" not in html
    parsed(html)
    scene = module_card(module)["scene"]
    texts = [mark["text"] for mark in scene["marks"] if mark["shape"] == "text"]
    assert f"{'n' * (LONGEST - 1)}…" in texts
    assert max(map(len, texts)) <= 2 * LONGEST
    assert scene["width"] < 600


def ladder(count):
    made = [Unit(f"u{n}", [(f"u{n}", "exp")]) for n in range(count)]
    for before, after in itertools.pairwise(made):
        after.reads.append(before)
    return made


def test_long_graphs_are_folded_in_the_middle():
    short = ladder(MOST_LAYERS)
    assert folded(short) == short
    shown = folded(ladder(1000))
    assert len(shown) == MOST_LAYERS + 1
    (fold,) = [unit for unit in shown if unit.is_fold]
    assert fold.name == f"… {1000 - MOST_LAYERS} boxes left out"
    assert all(each in shown[:n] for n, unit in enumerate(shown) for each in unit.reads)


def test_wide_layers_are_folded():
    source, sink = Unit("source"), Unit("sink", is_result=True)
    middle = [Unit(f"m{n}", [(f"m{n}", "exp")], reads=[source]) for n in range(40)]
    sink.reads = list(middle)
    shown = folded([source, *middle, sink])
    assert len(shown) == 2 + MOST_BESIDE
    fold = next(unit for unit in shown if unit.is_fold)
    assert fold.parts == [("35 × exp", "")]
    assert [each.name for each in fold.reads] == ["source"]
    assert fold in next(unit for unit in shown if unit.name == "sink").reads


def test_a_very_large_graph_is_a_small_page():
    x = graph.var("x", (2,))
    for _ in range(3000):
        x = op.exp(x)
    html = graph.Module.from_expr(x)._repr_html_()
    assert len(html) < 200_000
    assert "2969 are left out of the picture" in html


def test_functions_that_call_each_other():
    f, x = graph.var("f"), graph.var("x", (2,))
    first, second = (
        graph.Function((p,), graph.Call(y_field(f, other), (p,)))
        for other, p in ((1, graph.var("a")), (0, graph.var("b")))
    )
    body = graph.Call(y_field(f, 0), (x,))
    module = graph.Module.from_expr(
        graph.Function((x,), graph.Let(f, graph.Tuple((first, second)), body))
    )
    found = units(module)
    assert [unit.name for unit in found] == ["x", "function", "function", "call"]
    assert module._repr_html_() == module._repr_html_()
