"""Classic TVM's ``tvm.topi.tag``: tags for the kind of operator that made a tensor."""

from dlcompiler.compat.missing import reporter
from dlcompiler.ops.helpers import (
    BROADCAST,
    COMM_REDUCE,
    COMM_REDUCE_IDX,
    ELEMWISE,
    INJECTIVE,
)


def is_broadcast(tag: str) -> bool:
    """Tell whether a tag means a broadcast or an elementwise operator."""
    return tag.startswith((ELEMWISE, BROADCAST))


def is_injective(tag: str) -> bool:
    """Tell whether a tag means an injective, a broadcast or an elementwise operator."""
    return is_broadcast(tag) or tag.startswith(INJECTIVE)


__getattr__ = reporter(__name__)
__all__ = [
    "BROADCAST",
    "COMM_REDUCE",
    "COMM_REDUCE_IDX",
    "ELEMWISE",
    "INJECTIVE",
    "is_broadcast",
    "is_injective",
]
