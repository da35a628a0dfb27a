"""The suite of verified candidates of simulated GPUs, on a small work."""

import json

import pytest

from dlcompiler.bench import gpu_search


@pytest.mark.campaign
def test_a_row_counts_the_verified_candidates():
    said = []
    works = {"small": ("matmul", {"m": 16, "n": 16, "k": 8})}
    document = gpu_search.run_suite(said.append, works, count=4, first=2)
    assert json.loads(json.dumps(document)) == document
    (row,) = document["gpu search"]
    assert sum(row["outcomes"].values()) == 4
    assert row["rate_per_s"] == row["outcomes"].get("ok", 0) / row["seconds"]
    assert "verified candidates a second" in said[0]
