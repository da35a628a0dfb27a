"""Runs of models that stop after each kernel."""

import pytest

from dlcompiler.errors import OutOfMemory
from dlcompiler.graph.execution.stepping import SteppedRun


def test_an_arena_for_which_there_is_no_memory():
    with pytest.raises(OutOfMemory, match="arena"):
        SteppedRun((), (), (), (), arena_bytes=2**50)
