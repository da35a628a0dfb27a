"""The table of features beside other tools: each of ours names a test that there is."""

import re

import pytest

ROW = re.compile(r"^\| (?P<name>[^|]+) \| [^|]+ \| [^|]+ \| (?P<mark>[^|]+) \| ?(?P<test>[^|]*)\|$")
LINK = re.compile(r"\[(?P<words>[^\]]+)\]\(\.\./(?P<path>tests/[\w/]+\.py)\)")
LATER = "comes with "


@pytest.fixture
def rows(root):
    text = (root / "docs/EXPLORER.md").read_text(encoding="utf-8")
    table = text.partition("## Beside other tools")[2]
    found = [match for line in table.splitlines() if (match := ROW.match(line))]
    return [row for row in found if row["name"] not in ("Feature", "---")]


def test_all_features_are_there(rows):
    assert len(rows) == 48


def test_what_is_here_is_shown_by_a_test(root, rows):
    for row in rows:
        if row["mark"].startswith(LATER):
            assert not row["test"].strip(), row["name"]
            continue
        assert row["mark"].startswith(("yes", "part")), row["name"]
        link = LINK.fullmatch(row["test"].strip())
        assert link, row["name"]
        name = f"def test_{link['words'].replace(' ', '_')}("
        assert name in (root / link["path"]).read_text(encoding="utf-8"), row["name"]


def test_what_comes_later_says_with_what(rows):
    later = {row["mark"].removeprefix(LATER) for row in rows if row["mark"].startswith(LATER)}
    words = ("GPUs", "accelerator", "graphs", "tuning", "course")
    assert all(any(word in text for word in words) for text in later)
