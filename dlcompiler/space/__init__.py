"""Search spaces of a tuner: workloads, knobs and configs, as pure data.

A `Space` lists the knobs of one `Workload` and their values. A `Config` is one value for each knob,
by name. It has the fingerprint of its space, so a stored config is never used with a space whose
values have changed.

A template may declare its knobs while it runs: `Declaring` collects them, `Choosing` sets them to
the values of a config.
"""

from dlcompiler.space.builder import Choices, Choosing, Declaring, VirtualAxis
from dlcompiler.space.config import Config
from dlcompiler.space.counting import Count
from dlcompiler.space.entities import (
    AnnotateEntity,
    OtherOptionEntity,
    ReorderEntity,
    SplitEntity,
)
from dlcompiler.space.knob import Knob, Value, divisors, parallel_knob, split_knob
from dlcompiler.space.limits import feeds_cores, fills_lanes, registers_hold
from dlcompiler.space.rules import Filter
from dlcompiler.space.space import Space
from dlcompiler.space.workload import Workload

__all__ = [
    "AnnotateEntity",
    "Choices",
    "Choosing",
    "Config",
    "Count",
    "Declaring",
    "Filter",
    "Knob",
    "OtherOptionEntity",
    "ReorderEntity",
    "Space",
    "SplitEntity",
    "Value",
    "VirtualAxis",
    "Workload",
    "divisors",
    "feeds_cores",
    "fills_lanes",
    "parallel_knob",
    "registers_hold",
    "split_knob",
]
