"""Run the whole test suite in two groups, and end with one summary line over both.

The first group runs on all cores; the second (marker ``alone``: browsers, timings, notebooks) runs
one test at a time on the otherwise idle machine. Of campaigns, one case of `SHARE` is run unless
``CI`` or ``DLCOMPILER_TEST_SHARE`` is set: see ``tests/conftest.py``.

Arguments go to both: ``run_all.py tests/ir -k split``. The exit status is 0 only if both groups
passed and at least one test ran.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build" / "test"
NO_TEST_SELECTED = 5  # pytest's exit status
MOST_WORKERS = 8
ALONE = ["--timeout=300", "--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=280"]
GROUP_LIMIT_S = 3000  # above pytest's own limit per test, for a hang in native code
SHARE = 4
ONE_BLAS_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def main(arguments: list[str]) -> int:
    start = time.monotonic()
    REPORTS.mkdir(parents=True, exist_ok=True)
    chosen = any((ROOT / word.split("::")[0]).exists() for word in arguments)
    paths = [] if chosen else ["tests", "dlcompiler"]
    notebooks = [] if chosen else [str(path) for path in sorted(ROOT.glob("notebooks/*.ipynb"))]
    workers = min(_core_count(), MOST_WORKERS)
    if not chosen and not os.environ.get("CI"):
        os.environ.setdefault("DLCOMPILER_TEST_SHARE", str(SHARE))
    statuses = [
        _run("shared", ["-n", str(workers), "-m", "not alone", *paths], arguments, ONE_BLAS_THREAD),
        _run("alone", ["-m", "alone", *ALONE, *paths, *notebooks], arguments, {}),
    ]
    counts = {"failed": 0, "passed": 0, "skipped": 0, "errors": 0}
    for name, status in zip(("shared", "alone"), statuses, strict=True):
        _add_report(REPORTS / f"{name}.xml", status, counts)
    ok = all(status in (0, NO_TEST_SELECTED) for status in statuses) and counts["passed"] > 0
    print(_summary_line(counts, time.monotonic() - start), flush=True)
    return 0 if ok else 1


def _run(name: str, options: list[str], arguments: list[str], environment: dict[str, str]) -> int:
    report = REPORTS / f"{name}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", *options, f"--junit-xml={report}"]
    command += ["--durations=10", "--durations-min=2", *arguments]
    try:
        return subprocess.run(
            command,
            cwd=ROOT,
            env={**environment, **os.environ},
            timeout=GROUP_LIMIT_S,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        print(f"ERROR the group {name} was stopped after {GROUP_LIMIT_S} s", flush=True)
        return 1


def _add_report(report: Path, status: int, counts: dict[str, int]) -> None:
    """Add a group's counts and name its failures; a group without a report is an error."""
    if status == NO_TEST_SELECTED:
        return
    if not report.exists():
        print(f"ERROR the group {report.stem} ended with status {status} and left no report")
        counts["errors"] += 1
        return
    for case in ElementTree.parse(report).iter("testcase"):
        outcome = next((c.tag for c in case if c.tag in ("failure", "error", "skipped")), "passed")
        if outcome in ("failure", "error"):
            print(f"{outcome.upper()} {case.get('classname')}::{case.get('name')}")
        counts[{"failure": "failed", "error": "errors"}.get(outcome, outcome)] += 1


def _summary_line(counts: dict[str, int], seconds: float) -> str:
    """Both groups together, as pytest would put it."""
    parts = [f"{n} {what}" for what, n in counts.items() if n or what == "passed"]
    return f" {', '.join(parts)} in {seconds:.2f}s ".center(80, "=")


def _core_count() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
