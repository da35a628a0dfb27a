"""Keep how long each file of tests takes: ``make durations``, after a whole ``make test``.

It reads ``build/test/report.xml`` and writes ``tests/durations.json``: seconds by file. Run it on
an idle machine of two cores. `tests/architecture/test_durations.py` compares the table with what
each folder may take; it measures nothing itself.
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "build" / "test" / "report.xml"
TABLE = ROOT / "tests" / "durations.json"


def read_table() -> dict[str, float]:
    """Return the kept seconds by file, named relative to the repository."""
    return json.loads(TABLE.read_text(encoding="utf-8"))


def seconds_by_file(report: Path) -> dict[str, float]:
    """Return the seconds of each file in a report of pytest's, files with the most first."""
    found: defaultdict[str, float] = defaultdict(float)
    for case in ElementTree.parse(report).iter("testcase"):
        # A module that is skipped as a whole has its name only.
        name = case.get("classname") or case.get("name", "")
        found[_file_of(name)] += float(case.get("time", "0"))
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
    if not REPORT.is_file():
        print(f"there is no {REPORT}: run `make test` first")
        return 1
    table = seconds_by_file(REPORT)
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    print(f"{sum(table.values()):7.1f}  all")
    for folder, seconds in sorted(by_folder(table).items(), key=lambda item: -item[1]):
        print(f"{seconds:7.1f}  {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
