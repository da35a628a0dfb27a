"""Names of memory scopes in classic TVM."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

SYNONYMS: Mapping[str, str] = MappingProxyType(
    {
        "shared.dyn": "shared",
        # A fragment of a warp: the intrinsics that use it say which one.
        **dict.fromkeys(("wmma.matrix_a", "wmma.matrix_b", "wmma.accumulator"), "local"),
    }
)
"""Name of a memory scope in classic TVM -> the scope here, where they differ."""


def scope_named(name: Any) -> Any:
    """Return the memory scope for a name, which may be one of classic TVM's.

    Examples
    --------
    >>> scope_named("wmma.accumulator"), scope_named("shared.dyn"), scope_named("global")
    ('local', 'shared', 'global')
    """
    return SYNONYMS.get(name, name) if isinstance(name, str) else name
