"""Every notebook runs from its first cell to its last, at sizes that a test has time for.

``make docs`` runs them as they are.
"""

from pathlib import Path

import nbclient
import nbformat
import pytest
from traitlets.config import Config

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
SMALLER = {
    "01_quickstart": {"n = 1024": "n = 256", "trials=48": "trials=16"},
    "03_autotuning": {"trials=64, seed=0, db": "trials=32, seed=0, db"},
}
"""By notebook, what stands in one of its cells -> what the test runs instead."""
IPC = Config({"KernelManager": {"transport": "ipc"}})  # ports could be taken by another test


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs(path):
    book = nbformat.read(path, as_version=4)
    for text, smaller in SMALLER.get(path.stem, {}).items():
        (cell,) = [cell for cell in book.cells if text in cell.source]
        cell.source = cell.source.replace(text, smaller)
    client = nbclient.NotebookClient(book, kernel_name="python3", timeout=None, config=IPC)
    client.execute()


def test_a_cell_that_fails_is_noticed():
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")])
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="ZeroDivisionError"):
        nbclient.NotebookClient(book, kernel_name="python3", timeout=None, config=IPC).execute()
