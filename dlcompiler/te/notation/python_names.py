"""Names of variables in generated Python code: valid, not used by Python, and unique."""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import MutableSet

# A session of Python keeps its last result in `_`, among the builtins.
_TAKEN = {*dir(builtins), *keyword.kwlist, "te"} - {"_"}


def is_free(name: str) -> bool:
    """Tell whether a variable may have a name: it is no keyword, builtin or special name."""
    return name not in _TAKEN and not name.startswith("__")


def plain_name(name: str) -> str:
    """Return a name as an identifier, as Python reads it: ``µ`` is ``μ``, ``a.b`` is ``a_b``."""
    plain = unicodedata.normalize("NFKC", re.sub(r"\W", "_", name))
    # Some characters become others that no identifier has: ﬁ is two letters, ª and ² are not.
    plain = re.sub(r"\W", "_", plain)
    return plain if plain.isidentifier() else f"_{plain}"


def variable_name(name: str, used: MutableSet[str]) -> str:
    """Return a variable name for `name`, that name itself if it is free, and add it to `used`.

    Examples
    --------
    >>> used = {"B"}
    >>> [variable_name(name, used) for name in ("A.local", "print", "print_", "B")]
    ['A_local', 'print_1', 'print_', 'B_1']
    """
    plain = plain_name(name)
    plain = f"v{plain}" if plain.startswith("__") else plain
    result, n = plain, 1
    while result in used or not is_free(result):
        result, n = f"{plain}_{n}", n + 1
    used.add(result)
    return result
