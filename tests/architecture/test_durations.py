"""Each folder of tests stays within its budget, by the kept table: nothing is measured here.

``make durations`` writes the table (`tests/durations.py`) after a whole ``make test`` on the
reference machine: two idle cores.
"""

import pytest

from tests import durations

BUDGETS_S = {
    "dlcompiler": 2,
    "tests": 4,
    "tests/analysis": 8,
    "tests/architecture": 9,
    "tests/arith": 20,
    "tests/autotune": 74,
    "tests/bench": 29,
    "tests/cli": 74,
    "tests/codegen": 43,
    "tests/compat": 45,
    "tests/faults": 91,
    "tests/fuzz": 3,
    "tests/ir": 2,
    "tests/lowering": 17,
    "tests/measurement": 52,
    "tests/mutants": 3,
    "tests/notebooks": 43,
    "tests/ops": 98,
    "tests/passes": 16,
    "tests/pipeline": 88,
    "tests/pitfalls": 4,
    "tests/refusals": 8,
    "tests/runtime": 47,
    "tests/scalars": 24,
    "tests/schedule": 64,
    "tests/simulate": 4,
    "tests/space": 2,
    "tests/target": 2,
    "tests/te": 25,
    "tests/views": 20,
    "tests/widgets": 336,
}
"""Core seconds of each folder; the doctests are one folder."""


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
        "</testsuite></testsuites>"
    )
    files = durations.seconds_by_file(report)
    assert files == {
        "notebooks/01_quickstart.ipynb": 9.0,
        "tests/ir/test_verify.py": 3.8,
        "dlcompiler/te": 0.2,
    }
    assert durations.by_folder(files) == {"notebooks": 9.0, "tests/ir": 3.8, "dlcompiler": 0.2}
