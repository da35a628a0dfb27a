"""dlcompiler: explore how a tensor program becomes fast code.

::

    import dlcompiler as dlc
    from dlcompiler import te

    s = te.create_schedule(C.op)       # how to compute C
    dlc.lower(s, [A, B, C])            # its loop nest
    kernel = dlc.build(s, [A, B, C])   # its machine code
    dlc.races(s)                       # may its loops run in any order?
    dlc.verify(s, [A, B, C])           # is it right?
    dlc.measure(kernel)                # is it fast?
"""

# ruff: noqa: E402  the order matters: Ctrl-C during the imports of a command is one line
from dlcompiler.early_interrupts import catch_early_interrupts

catch_early_interrupts()

from dlcompiler import te
from dlcompiler.errors import DLCompilerError, InternalError, UserError
from dlcompiler.measurement import StepTable, compare, measure, verify
from dlcompiler.pipeline import build, cross_compile, lower, races, show_changes
from dlcompiler.runtime.registry import get_global_func, register_extern, register_func
from dlcompiler.runtime.threads import num_threads, set_num_threads
from dlcompiler.schedule import create_schedule

# Classic code finds create_schedule in te. The package te stands below schedule and cannot import
# it, so the two meet here, where a user's import always passes.
te.create_schedule = create_schedule  # type: ignore[attr-defined]

__all__ = [
    "DLCompilerError",
    "InternalError",
    "StepTable",
    "UserError",
    "build",
    "compare",
    "create_schedule",
    "cross_compile",
    "get_global_func",
    "lower",
    "measure",
    "num_threads",
    "races",
    "register_extern",
    "register_func",
    "set_num_threads",
    "show_changes",
    "te",
    "verify",
]
