"""Arrays that are shared, interrupted at any call: the interrupt arrives, none is swallowed."""

import sys

import numpy as np

from dlcompiler import dtypes
from dlcompiler.runtime.shared import SharedArrays

ARRAYS = {"A": np.ones((8, 8), "float32"), "empty": np.ones((0, 3), "int8"), "n": np.float32(1)}
ARRAYS["half"] = np.ones(3, dtypes.to_numpy("bfloat16"))


class Interrupt(KeyboardInterrupt):
    """What the handler of a signal raises."""


def interrupted(at):
    """Share arrays, and interrupt this at a call or return; tell whether there were as many."""
    seen, is_over, hook = 0, False, sys.unraisablehook

    def profile(frame, event, argument):
        nonlocal seen
        seen += not is_over
        if seen == at and not is_over:
            sys.setprofile(None)
            raise Interrupt

    dropped = []
    sys.unraisablehook = dropped.append
    try:
        sys.setprofile(profile)
        with SharedArrays(ARRAYS):
            pass
        is_over = True
    except Interrupt:
        return True
    finally:
        sys.setprofile(None)
        sys.unraisablehook = hook
    # Python drops what is raised in a destructor; `dlcompiler.shell` raises that again.
    assert seen < at or dropped, f"swallowed at event {at}"
    return bool(dropped)


def test_an_interrupt_at_any_call_arrives():
    with SharedArrays(ARRAYS):  # what happens only once
        pass
    at = 1
    while interrupted(at):
        at += 1
    assert at > 100
