"""The page about passes is what the passes say."""

from pathlib import Path

from dlcompiler.passes import __all__ as names
from dlcompiler.views.reference.pass_page import pass_page

PAGE = Path(__file__).parents[2] / "docs" / "PASSES.md"
HELPERS = {"Pass", "storage_bytes"}


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == pass_page(), "dlcompiler passes > docs/PASSES.md"


def test_every_pass_is_on_it_with_an_example():
    sections = pass_page().split("### ")[1:]
    assert {section.split("\n")[0] for section in sections} == set(names) - HELPERS
    for section in sections:
        assert section.count("```python") == section.count("```\n") >= 2
