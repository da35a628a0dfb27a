"""Run, verify and time programs in worker processes."""

from dlcompiler.measurement.compare import Comparison, compare
from dlcompiler.measurement.counterpart import numpy_counterpart
from dlcompiler.measurement.measure import measure
from dlcompiler.measurement.remote import RemoteKernel, shared_worker
from dlcompiler.measurement.steps import MeasuredStep, StepTable
from dlcompiler.measurement.verify import Verified, verify

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
