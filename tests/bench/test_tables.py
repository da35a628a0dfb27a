"""Making replay tables: which points, how often, and going on after an interruption."""

import pytest

from dlcompiler.autotune import RecordStore, Result
from dlcompiler.autotune.pools.replay import ReplayTable
from dlcompiler.bench import tables
from dlcompiler.bench.suites import TABLES
from dlcompiler.bench.tables import ROUNDS, measure_table, path_of, subject_of
from dlcompiler.cli import main
from dlcompiler.errors import TuningError

SUBJECT = subject_of("gemm:48x48x48")


class Pool:
    """Times by a formula; each batch finds the machine at another speed."""

    note = ""
    devices = ()

    def __init__(self, fails_after=None, seconds=lambda config: 1e-3):
        self.points = []
        self.fails_after = fails_after
        self.batches = 0
        self.seconds = seconds

    def measure(self, configs, best_s, report):
        self.batches += 1
        speed = 1 + 0.5 * (self.batches % 3)
        for number, config in enumerate(configs):
            if self.fails_after is not None and len(self.points) >= self.fails_after:
                raise KeyboardInterrupt
            self.points.append(SUBJECT.space.index_of(config))
            seconds = self.seconds(config) * speed
            report(number, Result("ok", (seconds, seconds * 0.9, seconds * 1.1)))

    def interrupt(self):
        pass

    def close(self):
        pass


def cost(config):
    return 1e-3 * (1 + abs(config.tile_m - 4) + abs(config.tile_n - 16) / 8 + config.unroll_k)


def silent(text):
    del text


def made(pool, store=None, points=60):
    with RecordStore() if store is None else store as used:
        return measure_table(SUBJECT, used, pool, {"cpu": "x"}, points=points, say=silent)


def test_the_neighbours_of_the_best_are_in_the_table():
    table = made(Pool(seconds=cost))
    best = table.best.point
    assert cost(SUBJECT.space.at(best)) == min(
        cost(SUBJECT.space.at(point)) for point in SUBJECT.space.allowed()
    )
    assert set(SUBJECT.space.neighbours(best)) <= set(table.points)
    assert SUBJECT.default in table.points
    assert len(table.rows) >= 60


def test_the_fastest_are_measured_in_rounds_and_the_machines_speed_is_levelled():
    pool = Pool(seconds=cost)
    table = made(pool)
    best = table.best
    assert pool.points.count(best.point) == 1 + ROUNDS
    # Each round had a speed of its own; what is left of that is nothing.
    assert best.low_s == pytest.approx(best.high_s)
    slow = max((row for row in table.rows), key=lambda row: row.median_s)
    assert pool.points.count(slow.point) == 1
    assert slow.low_s < slow.median_s < slow.high_s


def test_an_interrupted_measurement_goes_on_where_it_was(tmp_path):
    path = tmp_path / "records.sqlite"
    first = Pool(fails_after=100, seconds=cost)
    with pytest.raises(KeyboardInterrupt):
        made(first, RecordStore(path))
    second = Pool(seconds=cost)
    table = made(second, RecordStore(path))
    assert len(first.points) == 100
    assert not set(first.points) & set(second.points) - set(tables_of_rounds(table, second))
    third = Pool(seconds=cost)
    assert made(third, RecordStore(path)).points == table.points
    assert third.points == []


def tables_of_rounds(table, pool):
    """Return the points that the pool was asked for more than once, or that were near the best."""
    return [point for point in table.points if pool.points.count(point) >= ROUNDS]


def test_nothing_that_could_be_measured_is_an_error():
    class Failing(Pool):
        def measure(self, configs, best_s, report):
            for number, _ in enumerate(configs):
                report(number, Result("crashed", message="ended"))

    with pytest.raises(TuningError) as error:
        made(Failing())
    assert str(error.value) == "measure the table gemm-48x48x48: no point could be measured"


def test_the_works_are_those_of_the_suites():
    known = {label: work.text for table in TABLES for label, work in table.works.items()}
    for name, text in tables.WORKS.items():
        if name in known:
            assert known[name] == text
    assert subject_of("C9").operator.name == "conv2d_direct"
    assert subject_of("C9").name == "C9"
    assert subject_of("softmax:64x1000").name == "softmax-64x1000"


def test_the_command_measures_and_writes_a_table(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("dlcompiler.cli.bench._machine", lambda: {"cpu": "this one"})
    monkeypatch.setattr(tables, "ROUNDS", 1)
    monkeypatch.setattr(tables, "MOST_AGAIN", 2)
    monkeypatch.setattr(tables, "MOST_EXPANSIONS", 0)
    folder = tmp_path / "tables"
    command = ["bench", "--measure-table", "softmax:2x16", "--points", "3", "--into", str(folder)]
    assert main(command) == 0
    table = ReplayTable.load(path_of(folder, "softmax-2x16"))
    assert table.machine == {"cpu": "this one"}
    assert f"{len(table.rows)} points" in capsys.readouterr().out
    assert all(row.outcome == "ok" for row in table.rows)


def test_a_count_of_points_is_a_number(capsys):
    with pytest.raises(SystemExit):
        main(["bench", "--measure-table", "C9", "--points", "0"])
    assert "argument --points: not a positive number" in capsys.readouterr().err
