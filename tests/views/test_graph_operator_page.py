"""The page about the operators of graphs is what `dlcompiler graph-operators` writes."""

from pathlib import Path

from dlcompiler.graph.operators import REGISTRY
from dlcompiler.views.reference.graph_operator_page import graph_operator_page

PAGE = Path(__file__).parents[2] / "docs" / "GRAPH_OPERATORS.md"


def test_the_page_is_up_to_date():
    text = "dlcompiler graph-operators > docs/GRAPH_OPERATORS.md"
    assert PAGE.read_text(encoding="utf-8") == graph_operator_page(), text


def test_each_operator_says_what_it_computes():
    for name, entry in REGISTRY.items():
        assert entry.doc.endswith("."), name
        for attribute in entry.attributes:
            assert attribute.doc, f"{name}: {attribute.name}"
            assert not attribute.doc.endswith("."), f"{name}: {attribute.name}"
