"""The schedule primitives, one module each.

A primitive has `check` (returns a verdict for a state) and `apply` (returns the next state and the
result of the call). `check` refuses a step by itself; conditions on every state are checked on the
next state (`schedule.legality.validity`).
"""

from __future__ import annotations

from dlcompiler.registry import Registry
from dlcompiler.schedule.primitives.base import Primitive, StepContext

REGISTRY: Registry[Primitive] = Registry(
    "primitive",
    {
        "split": "dlcompiler.schedule.primitives.split:SPLIT",
        "fuse": "dlcompiler.schedule.primitives.fuse:FUSE",
        "reorder": "dlcompiler.schedule.primitives.reorder:REORDER",
        "tile": "dlcompiler.schedule.primitives.tile:TILE",
        "vectorize": "dlcompiler.schedule.primitives.vectorize:VECTORIZE",
        "unroll": "dlcompiler.schedule.primitives.unroll:UNROLL",
        "parallel": "dlcompiler.schedule.primitives.parallel:PARALLEL",
        "tensorize": "dlcompiler.schedule.primitives.tensorize:TENSORIZE",
        "bind": "dlcompiler.schedule.primitives.bind:BIND",
        "env_threads": "dlcompiler.schedule.primitives.env_threads:ENV_THREADS",
        "set_store_predicate": (
            "dlcompiler.schedule.primitives.set_store_predicate:SET_STORE_PREDICATE"
        ),
        "compute_at": "dlcompiler.schedule.primitives.compute_at:COMPUTE_AT",
        "compute_inline": "dlcompiler.schedule.primitives.compute_inline:COMPUTE_INLINE",
        "compute_root": "dlcompiler.schedule.primitives.compute_root:COMPUTE_ROOT",
        "create_group": "dlcompiler.schedule.primitives.create_group:CREATE_GROUP",
        "compute_group_at": "dlcompiler.schedule.primitives.compute_group_at:COMPUTE_GROUP_AT",
        "compute_group_root": (
            "dlcompiler.schedule.primitives.compute_group_root:COMPUTE_GROUP_ROOT"
        ),
        "cache_read": "dlcompiler.schedule.primitives.cache_read:CACHE_READ",
        "set_scope": "dlcompiler.schedule.primitives.set_scope:SET_SCOPE",
        "storage_align": "dlcompiler.schedule.primitives.storage_align:STORAGE_ALIGN",
        "align_extent": "dlcompiler.schedule.primitives.align_extent:ALIGN_EXTENT",
        "double_buffer": "dlcompiler.schedule.primitives.double_buffer:DOUBLE_BUFFER",
        "rolling_buffer": "dlcompiler.schedule.primitives.rolling_buffer:ROLLING_BUFFER",
        "transform_layout": "dlcompiler.schedule.primitives.transform_layout:TRANSFORM_LAYOUT",
        "prefetch": "dlcompiler.schedule.primitives.prefetch:PREFETCHING",
        "pragma": "dlcompiler.schedule.primitives.pragma:PRAGMA",
        "rfactor": "dlcompiler.schedule.primitives.rfactor:RFACTOR",
        "cache_write": "dlcompiler.schedule.primitives.cache_write:CACHE_WRITE",
    },
)


__all__ = ["REGISTRY", "Primitive", "StepContext"]
