"""Passes: pure functions from loop IR to loop IR; one that changes nothing returns its input."""

from dlcompiler.passes.base import Pass
from dlcompiler.passes.batch_assertions import batch_assertions
from dlcompiler.passes.branch_on_padding import branch_on_padding
from dlcompiler.passes.compute_in_place import compute_in_place
from dlcompiler.passes.eliminate_common_subexpressions import eliminate_common_subexpressions
from dlcompiler.passes.flatten_storage import flatten_storage
from dlcompiler.passes.inject_double_buffer import inject_double_buffer
from dlcompiler.passes.inject_prefetch import inject_prefetch
from dlcompiler.passes.inject_rolling_buffer import inject_rolling_buffer
from dlcompiler.passes.inject_virtual_threads import inject_virtual_threads
from dlcompiler.passes.instrument_bounds import instrument_bounds
from dlcompiler.passes.load_ahead import load_ahead
from dlcompiler.passes.lower_intrinsics import lower_intrinsics
from dlcompiler.passes.narrow_indices import narrow_indices
from dlcompiler.passes.partition_loops import partition_loops
from dlcompiler.passes.serialize_vectorized_loops import serialize_vectorized_loops
from dlcompiler.passes.simplify import simplify
from dlcompiler.passes.specialize_conditions import specialize_conditions
from dlcompiler.passes.storage_rewrite import storage_bytes, storage_rewrite
from dlcompiler.passes.unroll_loops import unroll_loops
from dlcompiler.passes.vectorize_loops import vectorize_loops

__all__ = [
    "Pass",
    "batch_assertions",
    "branch_on_padding",
    "compute_in_place",
    "eliminate_common_subexpressions",
    "flatten_storage",
    "inject_double_buffer",
    "inject_prefetch",
    "inject_rolling_buffer",
    "inject_virtual_threads",
    "instrument_bounds",
    "load_ahead",
    "lower_intrinsics",
    "narrow_indices",
    "partition_loops",
    "serialize_vectorized_loops",
    "simplify",
    "specialize_conditions",
    "storage_bytes",
    "storage_rewrite",
    "unroll_loops",
    "vectorize_loops",
]
