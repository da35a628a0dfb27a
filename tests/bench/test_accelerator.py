"""The suite of convolutions on a simulated accelerator, on a small layer."""

import json

from dlcompiler.bench import accelerator


def test_a_layer_is_right_and_hides_latency(monkeypatch):
    monkeypatch.setattr(accelerator, "LAYERS", {"C9": (7, 64, 64, 3, 1)})
    said = []
    document = accelerator.run_suite(said.append, ("C9",), latencies=(16, 64))
    assert document["failed"] == {}
    assert json.loads(json.dumps(document)) == document
    (row,) = document["accelerator"]
    assert row["is_right"]
    assert row["products"] <= row["cycles"] < row["cycles_without"]
    assert [each["latency"] for each in document["latency"]] == [16, 64]
    assert "GEMM core busy" in said[0]
