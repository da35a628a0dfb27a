"""The suite of compiled models, on small ones."""

import json

import pytest

from dlcompiler.bench import graphs
from dlcompiler.graph import builders


@pytest.mark.campaign
def test_models_are_built_verified_and_timed():
    said = []
    works = {"mlp": builders.mlp, "rnn cell": graphs.rnn_cell}
    document = graphs.run_suite(said.append, works, budget_s=0.02)
    assert document["failed"] == {}
    json.dumps(document)
    (mlp,), (cell,) = document["models"], document["cases"]
    assert (mlp["kernels"], mlp["unfused_kernels"]) == (5, 10)
    assert mlp["bound"] <= mlp["arena"] <= mlp["classic"] <= mlp["naive"]
    assert cell["unfused_kernels"] > cell["kernels"]
    assert isinstance(document["entry_s"], float)
    assert document["cases_mean"] > 0
    assert "geometric mean" in said[-1]


def test_a_model_that_fails_does_not_end_the_suite():
    def broken():
        raise ValueError("no model")

    document = graphs.run_suite(lambda row: None, {"broken": broken}, budget_s=0.02)
    assert document["failed"] == {"broken": "ValueError: no model"}
    assert document["models"] == []
