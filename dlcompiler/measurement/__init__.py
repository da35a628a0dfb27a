"""Run, verify and time programs in worker processes.

The names are imported when they are first used: a worker process needs none of them.
"""

from typing import TYPE_CHECKING, Any

from dlcompiler.registry import Registry

if TYPE_CHECKING:
    from dlcompiler.measurement.comparison import Comparison, compare
    from dlcompiler.measurement.counterpart import numpy_counterpart
    from dlcompiler.measurement.measuring import measure
    from dlcompiler.measurement.remote import RemoteKernel, shared_worker
    from dlcompiler.measurement.steps import MeasuredStep, StepTable
    from dlcompiler.measurement.verification import Verified, verify

LAZY: Registry[Any] = Registry(
    "name",
    {
        "Comparison": "dlcompiler.measurement.comparison:Comparison",
        "MeasuredStep": "dlcompiler.measurement.steps:MeasuredStep",
        "RemoteKernel": "dlcompiler.measurement.remote:RemoteKernel",
        "StepTable": "dlcompiler.measurement.steps:StepTable",
        "Verified": "dlcompiler.measurement.verification:Verified",
        "compare": "dlcompiler.measurement.comparison:compare",
        "measure": "dlcompiler.measurement.measuring:measure",
        "numpy_counterpart": "dlcompiler.measurement.counterpart:numpy_counterpart",
        "shared_worker": "dlcompiler.measurement.remote:shared_worker",
        "verify": "dlcompiler.measurement.verification:verify",
    },
)


if not TYPE_CHECKING:  # a type checker would take any name

    def __getattr__(name: str) -> Any:
        """Import a name when it is first used (PEP 562)."""
        if name not in LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found = LAZY[name]
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *LAZY})


__all__ = [
    "Comparison",
    "MeasuredStep",
    "RemoteKernel",
    "StepTable",
    "Verified",
    "compare",
    "measure",
    "numpy_counterpart",
    "shared_worker",
    "verify",
]
