"""The page about operators is what `dlcompiler operators` writes."""

from pathlib import Path

from dlcompiler.views.reference.operator_page import operator_page

PAGE = Path(__file__).parents[2] / "docs" / "OPERATORS.md"


def test_the_page_is_up_to_date():
    text = "dlcompiler operators > docs/OPERATORS.md"
    assert PAGE.read_text(encoding="utf-8") == operator_page(), text
