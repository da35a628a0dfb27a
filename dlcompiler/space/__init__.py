"""What a tuner may choose: workloads, knobs, spaces and configs, as pure data.

A `Space` lists the knobs of one `Workload` and their values. A `Config` is one value for each knob,
by name; it carries the fingerprint of the space that it was made for, so that a stored one is never
read against another list of values by position.
"""

from dlcompiler.space.config import Config
from dlcompiler.space.counting import Count
from dlcompiler.space.knob import Knob, Value, divisors, parallel_knob, split_knob
from dlcompiler.space.rules import Filter
from dlcompiler.space.space import Space
from dlcompiler.space.workload import Workload

__all__ = [
    "Config",
    "Count",
    "Filter",
    "Knob",
    "Space",
    "Value",
    "Workload",
    "divisors",
    "parallel_knob",
    "split_knob",
]
