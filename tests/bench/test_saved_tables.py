"""The page of measured tables is that of the document beside it, which is whole."""

import json
from pathlib import Path

import pytest

from dlcompiler.bench.document import read_document
from dlcompiler.bench.page import page
from dlcompiler.bench.suites import tables_of
from dlcompiler.errors import UserError

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("suffix", ["", "-avx2"])
def test_the_page_shows_the_saved_document(suffix):
    document = json.loads((DOCS / "benchmarks" / f"paper{suffix}.json").read_text("utf-8"))
    name = "BENCHMARKS" + suffix.upper().replace("-", "_")
    assert (DOCS / f"{name}.md").read_text("utf-8") == page(document)
    assert [table["name"] for table in document["tables"]] == [t.name for t in tables_of("paper")]
    assert all(row["verified"] for row in document["results"])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda d: d.pop("machine"), "not a document of tables"),
        (lambda d: d["machine"].pop("cpu"), "the document is damaged"),
        (lambda d: d["results"][0].pop("ratio"), "the document is damaged"),
        (lambda d: d["tables"].append(3), "the document is damaged"),
        (lambda d: d.update(results="none"), "the document is damaged"),
    ],
)
def test_a_damaged_document_is_refused(tmp_path, change, problem):
    document = json.loads((DOCS / "benchmarks" / "paper.json").read_text("utf-8"))
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    assert read_document(path) == document
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(UserError, match=f"bench --page: {problem}"):
        read_document(path)
    path.write_text("[" * 100_000)
    with pytest.raises(UserError, match="bench --page: cannot be read"):
        read_document(path)
