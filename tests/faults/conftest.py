"""Print the time that each fault costs beside its test: `pytest -s tests/faults`.

A folder is in memory where there is one: what a killed process leaves needs no disk to be right.
"""

import tempfile
import time
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")


@pytest.fixture
def folder():
    """A folder whose files are written at once."""
    place = _MEMORY if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=place) as made:
        yield Path(made)


@pytest.fixture(autouse=True)
def cost(request):
    start = time.perf_counter()
    yield
    print(f"\n  {request.node.name}: {time.perf_counter() - start:.2f} s", end="")
