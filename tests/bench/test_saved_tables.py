"""The page of measured tables is that of the document beside it, which is whole."""

import json
from pathlib import Path

from dlcompiler.bench.page import page
from dlcompiler.bench.suites import tables_of

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_shows_the_saved_document():
    document = json.loads((DOCS / "benchmarks" / "paper.json").read_text("utf-8"))
    assert (DOCS / "BENCHMARKS.md").read_text("utf-8") == page(document)
    assert [table["name"] for table in document["tables"]] == [t.name for t in tables_of("paper")]
    assert all(row["verified"] for row in document["results"])
