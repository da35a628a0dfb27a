"""The sweep is drawn from a seed, goes on where it stopped, and survives works that fail."""

import json
from pathlib import Path

import pytest

from dlcompiler.bench import sweep
from dlcompiler.bench.contest import Settings
from dlcompiler.bench.intervals import Ratio
from dlcompiler.bench.results import Contest, PeerResult, Result
from dlcompiler.bench.sweep_layers import LAYERS
from dlcompiler.cli import main
from dlcompiler.errors import UserError
from dlcompiler.runtime.timing import Timing

SETTINGS = Settings(peers=("numpy",))
MACHINE = {"cpu": "a processor; with details"}


class _Bench:
    """Stands for the measurement, which `tests/bench/test_contest.py` tests."""

    def __init__(self, settings):
        self.settings = settings

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def measure_row(self, work, row):
        if work.family == "softmax":
            return Result(work, row, 1, False, "RuntimeError: a bug")
        ours, theirs = Timing((2e-6,) * 3), Timing((1e-6,) * 3)
        peer = PeerResult(theirs, "a way", Ratio(0.5, 0.4, 0.6))
        return Result(
            work, row, 1, True, "", Contest(ours, {"numpy": peer}, Ratio(1, 1, 1), 100.0, 0.1)
        )


@pytest.fixture
def small(monkeypatch):
    """Replace the layers by small ones of three families, and the measurement."""
    layers = ("gemm:{3}x4x5", "softmax:{4}x8", "elementwise:relu:{64}", "gemm:{2}x4x3,dtype=int8")
    monkeypatch.setattr(sweep, "LAYERS", {"a model": layers})
    monkeypatch.setattr(sweep, "_LEAST_FLOPS", 0)
    monkeypatch.setattr(sweep, "Bench", _Bench)
    monkeypatch.setattr(sweep, "memory_bandwidth", lambda: 10.0)


def test_works_follow_from_their_seed_and_are_spread_over_the_families():
    total = 10 * len(sweep.COMPARED)
    works = sweep.works_of(total, seed=3)
    assert works[:48] == sweep.works_of(48, seed=3)
    assert works != sweep.works_of(total, seed=4)
    assert len({work.text for work in works}) == total
    counts = [sum(work.family == family for work in works) for family in sweep.COMPARED]
    assert counts == [10] * len(sweep.COMPARED)


@pytest.mark.campaign
def test_a_sweep_of_the_default_size_has_enough_works():
    assert len(sweep.works_of(sweep.COUNT, seed=1)) == sweep.COUNT


def test_each_family_has_layers():
    found = {text.partition(":")[0] for texts in LAYERS.values() for text in texts}
    assert found == set(sweep.COMPARED)


def test_a_sweep_goes_on_where_it_stopped(small):
    kept = []
    document = sweep.run_suite(
        str, SETTINGS, count=5, seed=1, machine=MACHINE, keep=lambda d: kept.append(json.dumps(d))
    )
    assert [len(json.loads(text)["results"]) for text in kept] == [1, 2, 3, 4, 5]
    before = json.loads(kept[1])
    again = sweep.run_suite(str, SETTINGS, count=5, seed=1, machine=MACHINE, before=before)
    assert again["results"][:2] == before["results"]
    slow = next(row for row in again["results"] if row["family"] == "gemm")
    assert slow["ratios"] == [pytest.approx(0.5)] * 2  # a slow work is measured twice
    assert [row["work"] for row in again["results"]] == [r["work"] for r in document["results"]]
    with pytest.raises(UserError, match="another seed"):
        sweep.run_suite(str, SETTINGS, count=5, seed=2, machine=MACHINE, before=before)
    with pytest.raises(UserError, match="another processor"):
        sweep.run_suite(str, SETTINGS, count=5, seed=1, machine={"cpu": "x"}, before=before)


def test_a_work_that_fails_does_not_end_the_sweep(small):
    document = sweep.run_suite(str, SETTINGS, count=3, seed=1, machine=MACHINE)
    assert list(document["failed"].values()) == ["RuntimeError: a bug"]
    assert document["families"] == {"elementwise": pytest.approx(0.5), "gemm": pytest.approx(0.5)}
    assert document["geometric_mean"] == pytest.approx(0.5)


def test_slow_works_are_listed_with_their_roofline():
    row = {"family": "gemm", "verified": True, "reason": "", "ours_seconds": 2e-6, "of_bound": 0.5,
           "best_peer": "numpy", "bound_seconds": 1e-6}  # fmt: skip
    rows = [{**row, "work": "a", "ratio": 0.5}, {**row, "work": "b", "ratio": 2.0}]
    found = sweep.summary(rows)
    assert found["geometric_mean"] == pytest.approx(1.0)
    assert [slow["work"] for slow in found["below"]] == ["a"]
    assert any("50.0% of 1.0 µs" in text for text in sweep.texts_of(found))


def test_other_documents_are_not_continued(tmp_path, capsys):
    path = tmp_path / "other.json"
    path.write_text("{}", encoding="utf-8")
    assert main(["bench", "--suite", "sweep", "--save", str(path)]) != 0
    assert "not a document of a sweep" in capsys.readouterr().err


def test_the_page_has_the_means_and_the_slow_works(small, tmp_path, capsys):
    paths = []
    for threads in (1, 2):
        document = sweep.run_suite(str, SETTINGS, count=3, seed=1, machine=MACHINE)
        paths.append(tmp_path / f"{threads}.json")
        paths[-1].write_text(json.dumps({**document, "threads": threads}), encoding="utf-8")
    assert main(["bench", "--page", *map(str, paths)]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert "| family | works | 1 thread | 2 threads |" in lines
    assert "| **all** | 2 | 0.50 | 0.50 |" in lines
    assert "## Below 0.8 with 2 threads" in lines
    assert sum(line.startswith("| 0.50 | `") and " numpy | 2 µs |" in line for line in lines) == 4
    assert any("failed: RuntimeError: a bug" in line for line in lines)
    paths[1].write_text("{}", encoding="utf-8")
    assert main(["bench", "--page", *map(str, paths)]) != 0
    assert "not a document of a sweep" in capsys.readouterr().err


@pytest.mark.parametrize(("page", "name"), [("SWEEP", "sweep"), ("SWEEP_AVX2", "sweep-avx2")])
def test_the_pages_are_up_to_date(page, name, capsys):
    docs = Path(__file__).parents[2] / "docs"
    paths = sorted((docs / "benchmarks").glob(f"{name}-[12].json"))
    assert main(["bench", "--page", *map(str, paths)]) == 0
    assert capsys.readouterr().out == (docs / f"{page}.md").read_text(encoding="utf-8"), (
        f"dlcompiler bench --page docs/benchmarks/{name}-[12].json > docs/{page}.md"
    )
