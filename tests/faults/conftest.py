"""A folder in memory where there is one: what a killed process leaves needs no disk to be right."""

import tempfile
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")


@pytest.fixture
def folder():
    """A folder whose files are written at once."""
    place = _MEMORY if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=place) as made:
        yield Path(made)
