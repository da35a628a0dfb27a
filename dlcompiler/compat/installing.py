"""Install classic module names in one process: ``import tvm`` then finds this package."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from types import ModuleType

from dlcompiler.compat.missing import PACKAGES
from dlcompiler.errors import UserError

OLDER = {
    "tvm.contrib.util": "tvm.contrib.utils",
    "tvm.expr": "tvm.tir",
    "tvm.module": "tvm.runtime",
    "tvm.ndarray": "tvm.nd",
    "tvm.runtime.ndarray": "tvm.nd",
    "tvm.relay.ir_pass": "tvm.relay.analysis",
    "tvm.relay.parser": "tvm.parser",
    "tvm.schedule": "tvm.te.schedule",
    "tvm.tensor": "tvm.te.tensor",
    "tvm.tir.expr": "tvm.tir",
    "tvm.topi.util": "tvm.topi.utils",
}
"""Name of a module in earlier versions -> its later name."""


def install() -> None:
    """Make ``import tvm``, ``vta``, ``d2ltvm`` and ``topi`` find the modules here.

    This affects only this process, and writes no file. Calling it again changes nothing.

    Raises
    ------
    UserError
        Another package called ``tvm``, ``vta`` or ``d2ltvm`` has been imported already.

    Examples
    --------
    >>> import dlcompiler.compat
    >>> dlcompiler.compat.install()                                            # doctest: +SKIP
    >>> from tvm import te                                                     # doctest: +SKIP
    """
    for classic, ours in PACKAGES.items():
        package = importlib.import_module(ours)
        _refuse_other(classic, package)
        for name in (ours, *_below(package)):
            sys.modules[classic + name.removeprefix(ours)] = importlib.import_module(name)
    for name, newer in OLDER.items():
        sys.modules[name] = sys.modules[newer]
    for name in [name for name in sys.modules if name.startswith("tvm.topi")]:
        sys.modules.setdefault(name.removeprefix("tvm."), sys.modules[name])


def _below(package: ModuleType) -> list[str]:
    """Return the names of all modules below a package."""
    return [m.name for m in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]


def _refuse_other(classic: str, package: ModuleType) -> None:
    other = sys.modules.get(classic)
    if other is not None and other is not package:
        raise UserError(
            "install the classic names",
            f"another package called {classic} is imported already",
            got=getattr(other, "__file__", None) or repr(other),
            hint="install the names earlier, or use: from dlcompiler.compat import tvm",
        )
