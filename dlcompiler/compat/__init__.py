"""Classic TVM names, to run scripts and notebooks written for TVM's te, schedules and AutoTVM.

There are three ways to use them::

    from dlcompiler.compat import tvm            # in place of: import tvm
    from dlcompiler.compat.tvm import te, topi   # in place of: from tvm import te, topi

    python -m dlcompiler.compat SCRIPT [args]    # an unchanged script

    import dlcompiler.compat                     # a notebook: this cell first,
    dlcompiler.compat.install()                  # then ``import tvm`` and others find us

These modules only translate names and arguments to those of this project. ``docs/COMPAT.md`` lists
the names with their state, and the deliberate differences.
"""

from dlcompiler.compat.installing import install
from dlcompiler.compat.notes import CompatNote

__all__ = ["CompatNote", "install"]
