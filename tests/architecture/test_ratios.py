"""Ratios for people are written by `format_ratio` alone, so that they have the same digits."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FORMATTED = re.compile(r"×\{[^}]*:\.\d[fg]\}|\{[^}]*:\.\d[fg]\} ?×")
"""A number with a number of digits of its own, next to the sign ×."""
BY_NAME = re.compile(r"\{[^}]*\bratio:\.\d[fg]\}")


def test_no_other_code_writes_a_ratio():
    sources = [*ROOT.glob("dlcompiler/**/*.py"), *ROOT.glob("widgets/**/*.py")]
    assert len(sources) > 300
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in sources
        for line in path.read_text().splitlines()
        if FORMATTED.search(line) or BY_NAME.search(line)
    ]
    assert found == []
