"""The compiler on one page: what happens between a schedule and a kernel, in which order.

``lower`` takes a schedule state to loop IR through the passes of the target's kind; ``build``
adds code generation and loading. Nothing else in the project decides an order.
"""

from __future__ import annotations

from dlcompiler.pipeline.build import CKernel, Kernel, build, emit_source
from dlcompiler.pipeline.checks import races
from dlcompiler.pipeline.cross import CrossModule, cross_compile
from dlcompiler.pipeline.lower import check_args, lower
from dlcompiler.pipeline.observers import Change, Observer, show_changes
from dlcompiler.pipeline.passes import EXTRA_PASSES, INSTRUMENTS, PASSES, passes_of
from dlcompiler.pipeline.simulated import SimulatedKernel

__all__ = [
    "EXTRA_PASSES",
    "INSTRUMENTS",
    "PASSES",
    "CKernel",
    "Change",
    "CrossModule",
    "Kernel",
    "Observer",
    "SimulatedKernel",
    "build",
    "check_args",
    "cross_compile",
    "emit_source",
    "lower",
    "passes_of",
    "races",
    "show_changes",
]
