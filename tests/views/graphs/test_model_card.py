"""The card of a compiled model names its kernels, its memory and its copies."""

import pytest

from dlcompiler.graph import build, builders, load_model, op, var
from dlcompiler.graph.ir import Module
from dlcompiler.views.graphs.model_card import model_card


def test_the_card_of_a_model():
    given = builders.lenet()
    card = model_card(build(given.module, params=given.params))
    facts = dict(card["facts"])
    assert card["text"] == "8 kernels, called 8 times"
    assert facts["target"] == "cpu"
    assert facts["returns"] == "out0: float32[1, 10]"
    ((title, table),) = card["tables"]
    assert title == "Steps"
    assert table["rows"][0][:3] == [0, "conv1+conv1_add+tanh_1", "fused_conv2d_add_tanh"]
    assert "conv2d" in table["rows"][0][3]
    assert table["rows"][-1][3:] == ["softmax", 40, "result 0"]


def test_the_card_of_parts_on_devices():
    x = op.on_device(op.exp(var("x", (4,))), "gpu")
    model = build(Module.from_expr(op.on_device(op.sqrt(x), "cpu")), {"cpu": "cpu", "gpu": "gpu"})
    card = model_card(model)
    facts = dict(card["facts"])
    assert facts["target"] == "cpu: cpu, gpu: gpu"
    assert facts["copies between devices"] == "2, 32 B in each call"
    assert "copy between devices" in [row[2] for row in card["tables"][0][1]["rows"]]


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "a" * 10_000, "q\"'&"])
def test_hostile_names_are_text(name, tmp_path):
    model = build(Module.from_expr(op.exp(var(name, (4,)), name=name)))
    for each in (model, load_model(model.save(tmp_path / "m"))):
        html = each._repr_html_()
        assert "<script" not in html
        assert len(html) < 20_000
