"""Each folder of tests stays within its budget, by the kept table: nothing is measured here.

``make durations`` writes the table (`tests/durations.py`) after a whole ``make test`` on the
reference machine: two idle cores.
"""

import pytest

from tests import durations

BUDGETS_S = {
    "dlcompiler": 3,
    "tests": 2,
    "tests/analysis": 19,
    "tests/architecture": 33,
    "tests/arith": 23,
    "tests/autotune": 97,
    "tests/bench": 56,
    "tests/cli": 40,
    "tests/codegen": 67,
    "tests/compat": 38,
    "tests/faults": 55,
    "tests/fuzz": 8,
    "tests/graph": 154,
    "tests/ir": 2,
    "tests/lowering": 20,
    "tests/measurement": 63,
    "tests/mutants": 1,
    "tests/ops": 56,
    "tests/passes": 5,
    "tests/pipeline": 32,
    "tests/pitfalls": 4,
    "tests/refusals": 2,
    "tests/runtime": 60,
    "tests/scalars": 33,
    "tests/schedule": 139,
    "tests/simulate": 40,
    "tests/space": 1,
    "tests/target": 1,
    "tests/te": 27,
    "tests/views": 29,
    "tests/widgets": 533,
}
"""Seconds of each folder in a run of three processes on two cores; all doctests are one."""
WHOLE_S = 600
"""What ``make test`` may take there."""
PROCESSES = 3


@pytest.fixture(scope="module")
def table():
    return durations.read_table()


def test_each_folder_stays_within_its_budget(table):
    over = {
        folder: f"{seconds:.1f} s of {BUDGETS_S.get(folder, 0)} s"
        for folder, seconds in durations.by_folder(table).items()
        if seconds > BUDGETS_S.get(folder, 0)
    }
    assert not over, "make its tests cheaper, or mark many cases of one kind as a campaign"


def test_the_budgets_fit_into_ten_minutes():
    assert sum(BUDGETS_S.values()) / PROCESSES <= 0.92 * WHOLE_S, "the rest is for collecting tests"


def test_the_table_and_the_budgets_know_every_folder_of_tests(root, table):
    folders = {
        path.relative_to(root).parts[1]
        for path in (root / "tests").rglob("test_*.py")
        if len(path.relative_to(root).parts) > 2
    }
    wanted = {f"tests/{name}" for name in folders}
    assert wanted - durations.by_folder(table).keys() == set(), "run `make durations`"
    assert wanted - BUDGETS_S.keys() == set(), "give it a budget"


def test_seconds_are_added_by_file_and_by_folder(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.ir.test_verify" name="a" time="1.5"/>'
        '<testcase classname="tests.ir.test_verify.TestX" name="b" time="2.25"/>'
        '<testcase classname="notebooks.01_quickstart.ipynb" name="c" time="9"/>'
        '<testcase classname="dlcompiler.te" name="dlcompiler.te.split" time="0.25"/>'
        '<testcase classname="" name="tests.space.test_space" time="0"/>'
        "</testsuite></testsuites>"
    )
    files = durations.seconds_by_file(report)
    assert files == {
        "notebooks/01_quickstart.ipynb": 9.0,
        "tests/ir/test_verify.py": 3.8,
        "dlcompiler/te": 0.2,
        "tests/space/test_space.py": 0.0,
    }
    assert durations.by_folder(files) == {
        "notebooks": 9.0, "tests/ir": 3.8, "dlcompiler": 0.2, "tests/space": 0.0,
    }  # fmt: skip
