"""Classic TVM names, so that scripts and notebooks written for them run here.

Three ways in::

    from dlcompiler.compat import tvm            # in place of: import tvm
    from dlcompiler.compat.tvm import te, topi   # in place of: from tvm import te, topi

    python -m dlcompiler.compat SCRIPT [args]    # an unchanged script

    import dlcompiler.compat                     # a notebook: this cell first,
    dlcompiler.compat.install()                  # then ``import tvm`` and ``import d2ltvm`` find us

The modules here hold no compiler: each name is translated to what this project calls it.
``docs/COMPAT.md`` lists the names with their state, and where the meaning differs on purpose.
"""

from dlcompiler.compat.installing import install
from dlcompiler.compat.notes import CompatNote

__all__ = ["CompatNote", "install"]
