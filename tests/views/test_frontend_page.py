"""The page about models of other libraries is what `dlcompiler frontends` writes."""

from pathlib import Path

from dlcompiler.views.reference.frontend_page import frontend_page

PAGE = Path(__file__).parents[2] / "docs" / "FRONTENDS.md"


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == frontend_page(), (
        "dlcompiler frontends > docs/FRONTENDS.md"
    )
