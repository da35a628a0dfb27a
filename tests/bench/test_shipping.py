"""Configs that a search found are kept where they are faster, beside those that are there."""

import json

import pytest

from dlcompiler.bench.shipping import Found, find_config, keep
from dlcompiler.bench.works import parse_work
from dlcompiler.cli import main
from dlcompiler.errors import UserError
from dlcompiler.ops import tuned
from dlcompiler.space import Workload

WORK = parse_work("gemm:24x32x16")


@pytest.mark.campaign
def test_a_search_finds_what_one_core_may_choose():
    found = find_config(WORK, trials=3, seconds=None, seed=0)
    assert found.workload == Workload.of("matmul", m=24, n=32, k=16, dtype="float32")
    assert {"tile_m", "tile_n", "panel"} <= found.values.keys()
    assert "parallel" not in found.values
    assert found.ratio > 0


def test_what_is_kept_joins_what_is_there(tmp_path):
    path = tmp_path / "new" / "x.json"
    first, second = (Workload.of("matmul", m=m, n=1, k=1) for m in (2, 1))
    keep(path, Found(WORK, first, {"tile_m": 4}, 1.5))
    keep(path, Found(WORK, second, {"tile_m": 6}, 1.5))
    keep(path, Found(WORK, first, {"tile_m": 8}, 1.5))
    document = json.loads(path.read_text())
    assert tuned.read(document) == {first: {"tile_m": 8}, second: {"tile_m": 6}}
    assert [entry["workload"]["params"]["m"] for entry in document["configs"]] == [1, 2]


def test_another_file_is_left_alone(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("[1, 2]")
    with pytest.raises(UserError, match="not a file of tuned configs"):
        keep(path, Found(WORK, Workload.of("matmul", m=1), {}, 2.0))
    assert path.read_text() == "[1, 2]"


def test_the_command_says_what_it_found(capsys):
    assert main(["tune", "gemm:8x16x8", "--trials", "2"]) == 0
    assert "× the config used so far: tile_m=" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "{", '{"version": 1, "configs": 3}', '{"version": 1, "configs": [3]}',
        '{"version": 1, "configs": [{"workload": {"op": "x", "params": {}}}]}',
        '{"version": 1, "configs": [{"workload": 1, "values": {}}]}',
        '{"version": 1, "configs": [{"workload": {"op": "x", "params": {}}, "values": {"": 0.5}}]}',
        "[" * 100_000, '{"version": 1, "configs": [], "x": "\\ud800"}',
    ],
)  # fmt: skip
def test_a_damaged_file_is_left_alone(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UserError, match="not a file of tuned configs"):
        keep(path, Found(WORK, Workload.of("matmul", m=1), {}, 2.0))
    assert path.read_text() == text
