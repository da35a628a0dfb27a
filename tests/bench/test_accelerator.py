"""The suites of convolutions on a simulated accelerator, on a small layer."""

import json

import pytest

from dlcompiler.bench import accelerator, accelerator_totals, accelerator_tuning
from dlcompiler.errors import UserError
from dlcompiler.pipeline import build
from dlcompiler.target import resolve


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setitem(accelerator.LAYERS, "C9", (7, 32, 64, 3, 1))


def test_a_layer_is_right_and_hides_latency(small, tmp_path):
    said, picture = [], tmp_path / "roofline.svg"
    document = accelerator.run_suite(
        said.append, ("C9",), latencies=(16, 64), counts={"C9": 3}, picture=str(picture)
    )
    assert document["failed"] == {}
    assert json.loads(json.dumps(document)) == document
    (row,) = document["accelerator"]
    assert row["is_right"]
    assert row["products"] <= row["cycles"] < row["cycles_without"]
    plain, hidden = (row["points"][series]["rate"] for series in accelerator.SERIES)
    assert plain / 512 == pytest.approx(row["products"] / row["cycles_without"])
    assert plain < hidden
    assert document["peak"]["hidden"] == row["products"] / row["cycles"]
    assert [each["latency"] for each in document["latency"]] == [16, 64]
    assert "GEMM core busy" in said[0]
    assert picture.read_text().startswith("<svg")
    totals = document["totals"]
    assert totals["products"] == 3 * row["products"]
    added, alone = (totals["terms"][f"profile B{end}"] for end in (" with sums of residuals", ""))
    assert added["products"] == alone["products"] >= totals["products"]
    assert added["sums of biases and residuals"] > alone["sums of biases and residuals"]


def test_the_terms_of_a_program_add_up_to_its_cycles(small):
    item, target = accelerator.operator("conv2d_packed"), resolve("vta-pynq")
    workload = accelerator.workload_of("C9")
    s, args = item.template(workload, target, item.default_config(workload, target))
    report = build(s, args, target).report()
    terms = accelerator_totals.terms_of(report)
    assert sum(terms.values()) == report.cycles
    assert terms["products"] >= accelerator.extents_of(workload).updates
    assert all(cycles >= 0 for cycles in terms.values())


@pytest.mark.campaign
def test_a_layer_is_tuned_and_goes_on_where_it_stopped(small, tmp_path):
    said, db = [], str(tmp_path / "trials.sqlite")
    for trials in (1, 2):
        document = accelerator_tuning.run_suite(
            said.append, ("C9",), trials=trials, db=db, tuner="random"
        )
    (row,) = document["tuned"]
    assert row["trials"] == 2
    assert row["outcomes"] == {"ok": 2}
    assert row["products"] < row["engine"] < row["cycles"] <= row["by_hand"]
    assert json.loads(json.dumps(document)) == document
    assert "the best by hand" in said[0]


def test_an_unknown_layer_is_refused():
    with pytest.raises(UserError, match="no such layer"):
        accelerator_tuning.run_suite(print, ("C1",))
