"""Files of measured programs, also damaged ones."""

import gzip
import json

import pytest

from dlcompiler.cli import main
from dlcompiler.errors import UserError
from dlcompiler.simulate.accelerators.measured import compare_file, read_program
from tests.simulate.accelerators.conftest import FILE, records

GOOD = next(each for each in records() if each["id"] == "alu_imm_001")


def lines(path, *given):
    path.write_text(
        "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in given)
    )
    return path


@pytest.mark.parametrize("profile", ["A", "B"])
def test_the_command(capsys, profile):
    assert main(["vta", "run", str(FILE), "--profile", profile, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["results"]
    assert [each["id"] for each in found] == [each["id"] for each in records()]
    assert {key for each in found for key in each} == {
        "id", "cycles", "outputs_equal", "trace_equal", "problem",
    }  # fmt: skip
    year = {"A": "2019", "B": "2021"}[profile]
    assert [each["cycles"] for each in found] == [each[f"cycles_{year}"] for each in records()]
    assert all(each["trace_equal"] for each in found)
    assert {each["outputs_equal"] for each in found} == {None, True}
    problems = {each["id"].rsplit("_", 1)[0] for each in found if each["problem"]}
    hazards = {"hazard_gemm", "hazard_one_update", "hazard_split_pad"}
    assert problems == (hazards if profile == "A" else set())


def test_the_command_prints_a_summary(tmp_path, capsys):
    bare = {key: GOOD[key] for key in GOOD if not key.startswith(("trace", "cycles", "outputs"))}
    assert main(["vta", "run", str(lines(tmp_path / "f", GOOD, "", bare))]) == 0
    text = capsys.readouterr().out
    assert "alu_imm_001: 864 cycles; as measured; outputs equal; trace equal" in text
    assert "cycles   equal for 1 of 1" in text


def test_one_bad_program_does_not_end_the_run(tmp_path, capsys):
    wrong = dict(GOOD, id="wrong", cycles_2021=1, outputs=[dict(GOOD["outputs"][0], sha256="0")],
                 trace_2021={"load": [], "compute": [], "store": []})  # fmt: skip
    deadlock = dict(GOOD, id="deadlock", instructions=["10", "03"])
    deadlock["instructions"] = [word.ljust(32, "0") for word in deadlock["instructions"]]
    path = lines(tmp_path / "f", "{", wrong, "[]", deadlock, {"id": "empty"}, GOOD)
    assert main(["vta", "run", str(path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["results"]
    assert [each["id"] for each in found] == [
        "line 1", "wrong", "line 3", "deadlock", "empty", "alu_imm_001",
    ]  # fmt: skip
    assert found[1]["outputs_equal"] is found[1]["trace_equal"] is False
    assert found[3]["cycles"] is None
    assert found[3]["problem"].startswith("deadlock")
    assert [each["problem"] is None for each in found] == [False, True, False, False, False, True]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"config": {"LOG_BLOCK": 40}}, "LOG_BLOCK_IN"),
        ({"config": {"clock_hz": 3}}, "config"),
        ({"dram_bytes": 1 << 40}, "dram_bytes"),
        ({"insn_address": -1}, "insn_address"),
        ({"instructions": ["zz" * 16]}, "32 hexadecimal digits"),
        ({"instructions": []}, "instructions"),
        ({"uops": [1 << 40]}, r"uops\[0\]"),
        ({"dram": [{"address": 0, "count": 1 << 40, "fill": 1}]}, "count"),
        ({"dram": [{"address": 0, "count": 1, "dtype": "object"}]}, "dtype"),
        ({"dram": [{"address": 0, "count": 1, "dtype": "int8", "low": 5, "high": 5, "seed": 1}]},
         "high"),
        ({"outputs": [{"address": 0, "bytes": 1 << 40, "sha256": ""}]}, "bytes"),
        ({"trace_2021": 3}, "trace"),
        ({"cycles_2021": "many"}, "cycles_2021"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_used(change, problem):
    with pytest.raises(UserError, match=problem):
        read_program({**GOOD, **change}, "B")


def test_files_that_cannot_be_read(tmp_path):
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(json.dumps(GOOD).encode())[:-20])
    for path in (tmp_path / "nothing", tmp_path, broken):
        with pytest.raises(UserError, match="the file cannot be read"):
            list(compare_file(path, "A"))
