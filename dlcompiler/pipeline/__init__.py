"""Run the compiler: lower a schedule, generate code, and load it, in this order.

``lower`` takes a schedule state to loop IR through the passes of the target's kind; ``build``
adds code generation and loading. The order of the passes is defined here and nowhere else.
"""

from __future__ import annotations

from dlcompiler.pipeline.build import build, build_program, emit_source, lower_program
from dlcompiler.pipeline.cache_simulation import simulate_cache
from dlcompiler.pipeline.checks import races
from dlcompiler.pipeline.cross import CrossModule, cross_compile
from dlcompiler.pipeline.devices import DEVICES, device_of, to_device
from dlcompiler.pipeline.executables import (
    Built,
    CKernel,
    Kernel,
    LoadedSource,
    NullKernel,
    SimulatedKernel,
)
from dlcompiler.pipeline.lower import check_args, lower
from dlcompiler.pipeline.observers import Change, Observer, show_changes
from dlcompiler.pipeline.pipelines import (
    EXTRA_PASSES,
    INSTRUMENTS,
    PIPELINES,
    Pipeline,
    passes_of,
)

__all__ = [
    "DEVICES",
    "EXTRA_PASSES",
    "INSTRUMENTS",
    "PIPELINES",
    "Built",
    "CKernel",
    "Change",
    "CrossModule",
    "Kernel",
    "LoadedSource",
    "NullKernel",
    "Observer",
    "Pipeline",
    "SimulatedKernel",
    "build",
    "build_program",
    "check_args",
    "cross_compile",
    "device_of",
    "emit_source",
    "lower",
    "lower_program",
    "passes_of",
    "races",
    "show_changes",
    "simulate_cache",
    "to_device",
]
