"""dlcompiler: explore how a tensor program becomes fast code.

::

    import dlcompiler as dlc
    from dlcompiler import te

    s = te.create_schedule(C.op)       # how to compute C
    dlc.lower(s, [A, B, C])            # its loop nest
    kernel = dlc.build(s, [A, B, C])   # its machine code
    dlc.races(s)                       # may its loops run in any order?
    dlc.simulate_cache(s, [A, B, C])   # which accesses miss in the caches?
    dlc.verify(s, [A, B, C])           # is it right?
    dlc.measure(kernel)                # is it fast?
"""

# ruff: noqa: E402  `early_interrupts` comes first, so that Ctrl-C during later imports is handled
from dlcompiler.early_interrupts import catch_early_interrupts

catch_early_interrupts()

import importlib
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import DLCompilerError, InternalError, UserError
from dlcompiler.registry import Registry

if TYPE_CHECKING:
    from dlcompiler import te
    from dlcompiler.measurement import StepTable
    from dlcompiler.measurement.comparison import compare
    from dlcompiler.measurement.measuring import measure
    from dlcompiler.measurement.verification import verify
    from dlcompiler.pipeline import cross_compile, races, show_changes, simulate_cache
    from dlcompiler.pipeline.build import build
    from dlcompiler.pipeline.devices import to_device
    from dlcompiler.pipeline.lower import lower
    from dlcompiler.runtime.registry import get_global_func, register_extern, register_func
    from dlcompiler.runtime.threads import num_threads, set_num_threads
    from dlcompiler.schedule import create_schedule
    from dlcompiler.target import cuda, opencl

#: Names that are imported at first use: a command or a worker process needs few of them, and
#: importing the whole compiler takes most of a second.
LAZY: Registry[Any] = Registry(
    "name",
    {
        "StepTable": "dlcompiler.measurement:StepTable",
        "build": "dlcompiler.pipeline:build",
        "compare": "dlcompiler.measurement:compare",
        "create_schedule": "dlcompiler.schedule:create_schedule",
        "cuda": "dlcompiler.target:cuda",
        "cross_compile": "dlcompiler.pipeline:cross_compile",
        "get_global_func": "dlcompiler.runtime.registry:get_global_func",
        "lower": "dlcompiler.pipeline:lower",
        "measure": "dlcompiler.measurement:measure",
        "num_threads": "dlcompiler.runtime.threads:num_threads",
        "opencl": "dlcompiler.target:opencl",
        "races": "dlcompiler.pipeline:races",
        "register_extern": "dlcompiler.runtime.registry:register_extern",
        "register_func": "dlcompiler.runtime.registry:register_func",
        "set_num_threads": "dlcompiler.runtime.threads:set_num_threads",
        "show_changes": "dlcompiler.pipeline:show_changes",
        "simulate_cache": "dlcompiler.pipeline:simulate_cache",
        "to_device": "dlcompiler.pipeline:to_device",
        "verify": "dlcompiler.measurement:verify",
    },
)


PACKAGES = ("autotune", "graph", "ir", "measurement", "ops", "pipeline", "runtime", "schedule",
            "simulate", "space", "target", "te", "views")  # fmt: skip
"""Packages that are attributes without being imported explicitly: ``dlc.ops``."""


if not TYPE_CHECKING:  # a type checker would take any name

    def __getattr__(name: str) -> Any:
        """Import a name or a package when it is first used (PEP 562)."""
        if name in PACKAGES:
            return importlib.import_module(f"{__name__}.{name}")
        if name not in LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found = LAZY[name]
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *LAZY, *PACKAGES})


__all__ = [
    "DLCompilerError",
    "InternalError",
    "StepTable",
    "UserError",
    "build",
    "compare",
    "create_schedule",
    "cross_compile",
    "cuda",
    "get_global_func",
    "lower",
    "measure",
    "num_threads",
    "opencl",
    "races",
    "register_extern",
    "register_func",
    "set_num_threads",
    "show_changes",
    "simulate_cache",
    "te",
    "to_device",
    "verify",
]
