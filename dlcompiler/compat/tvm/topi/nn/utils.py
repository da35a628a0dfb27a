"""Classic TVM's ``tvm.topi.nn.utils``."""

from typing import Any

from dlcompiler.compat.missing import reporter
from dlcompiler.ops.conv2d.plain import padding_of


def get_pad_tuple(padding: Any, kernel: Any) -> tuple[int, int, int, int]:
    """Return the padding on top, left, at the bottom and right; see `padding_of`.

    Examples
    --------
    >>> get_pad_tuple("SAME", (3, 4))
    (1, 2, 1, 1)
    """
    before, after = padding_of(padding, kernel)
    return (*before, *after)


__getattr__ = reporter(__name__)
__all__ = ["get_pad_tuple"]
