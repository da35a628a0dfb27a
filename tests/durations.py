"""Keep how long each file of tests takes: ``make durations``, after a whole ``make test``.

It reads ``build/test/*.xml`` and writes ``tests/durations.json``: for each group of `run_all.py`,
seconds by file. Run it on an idle machine of two cores; `tests/architecture/test_durations.py`
compares the table with what each folder may take, and never measures anything itself.
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build" / "test"
TABLE = ROOT / "tests" / "durations.json"
GROUPS = ("shared", "alone")


def read_table() -> dict[str, dict[str, float]]:
    """Return the kept seconds by group, then by file (relative to the repository)."""
    return json.loads(TABLE.read_text(encoding="utf-8"))


def seconds_by_file(report: Path) -> dict[str, float]:
    """Return the seconds of each file in a report of pytest's, files with the most first."""
    found: defaultdict[str, float] = defaultdict(float)
    for case in ElementTree.parse(report).iter("testcase"):
        found[_file_of(case.get("classname", ""))] += float(case.get("time", "0"))
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return {name: round(seconds, 1) for name, seconds in ordered}


def by_folder(files: dict[str, float]) -> dict[str, float]:
    """Return the seconds of each folder below ``tests``; all doctests are one: ``dlcompiler``."""
    found: defaultdict[str, float] = defaultdict(float)
    for name, seconds in files.items():
        parts = Path(name).parts
        is_below = parts[0] == "tests" and len(parts) > 2
        found[f"tests/{parts[1]}" if is_below else parts[0]] += seconds
    return dict(found)


def _file_of(classname: str) -> str:
    """Return the file of a test, of which the report has the dotted name: ``tests.ir.test_x``."""
    parts = classname.split(".")
    if parts[-1] == "ipynb":
        return "/".join(parts[:-1]) + ".ipynb"
    for count in range(len(parts), 0, -1):
        path = Path(*parts[:count]).with_suffix(".py")
        if (ROOT / path).is_file():
            return path.as_posix()
    return "/".join(parts)


def main() -> int:
    missing = [name for name in GROUPS if not (REPORTS / f"{name}.xml").is_file()]
    if missing:
        print(f"no report of {' and '.join(missing)} in {REPORTS}: run `make test` first")
        return 1
    table = {name: seconds_by_file(REPORTS / f"{name}.xml") for name in GROUPS}
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    for group, files in table.items():
        print(f"{group}: {sum(files.values()):.0f} s")
        for folder, seconds in sorted(by_folder(files).items(), key=lambda item: -item[1]):
            print(f"  {seconds:7.1f}  {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
