"""Names of the arrays that our kernels and all peers compute on in a contest."""

from __future__ import annotations

INPUT, EXPECTED, BOUND = "input:", "expected:", "bound:"
"""Prefixes of the names of inputs, of right outputs, and of their bounds."""
ALONE = "alone:"
"""Prefix of arrays of our one-thread kernel if another operator computes it."""
PLAIN = "plain:"
"""Prefix of arrays that peers take instead of one that was packed ahead."""
