"""The suite of intrinsics beside plain loops, on small products."""

import functools
import json

import pytest

from dlcompiler.bench import intrinsics
from dlcompiler.cli import main
from dlcompiler.errors import TargetError


def test_rows_of_small_products():
    works = {
        "gemm": functools.partial(intrinsics._gemm, 12, 32, 16),
        "gemv": functools.partial(intrinsics._gemm, 1, 32, 16),
        "dots": functools.partial(intrinsics._dot4, "uint8", 2, 32, 64),
    }
    said = []
    document = intrinsics.run_suite(said.append, works, rounds=2)
    assert document["version"] == 1
    assert [row["work"] for row in document["intrinsics"]] == list(works)
    assert [line.split()[0] for line in said] == list(works)
    for row in document["intrinsics"]:
        assert set(row["medians_s"]) == set(row["ratios"]) == {"nest", "vectorized"}
        assert row["median_s"] > 0
        assert row["intrinsic"].partition("_")[0] in ("gemm", "gemv", "dot4")
    assert "ms; nest" in said[0]


@pytest.mark.campaign
def test_a_product_that_fails_does_not_end_the_suite(monkeypatch, capsys):
    def broken(target):
        raise TargetError("make a product", "the machine has no such instruction")

    works = {"bad": broken, "gemm": functools.partial(intrinsics._gemm, 4, 16, 8)}
    suite = functools.partial(intrinsics.run_suite, works=works, rounds=2)
    monkeypatch.setattr(intrinsics, "run_suite", suite)
    assert main(["bench", "--suite", "intrinsics", "--json"]) == 1
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert [row["work"] for row in document["intrinsics"]] == ["gemm"]
    reason = "TargetError: make a product: the machine has no such instruction"
    assert document["failed"] == {"bad": reason}
    assert printed.err == f"bad: {reason}\n"
