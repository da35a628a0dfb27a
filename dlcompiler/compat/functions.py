"""TVM's packed functions: Python functions registered by name, called with `NDArray`s."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from dlcompiler.compat.arrays import NDArray
from dlcompiler.errors import UserError
from dlcompiler.runtime import registry


def register_func(func_name: Any, f: Any = None, override: bool = False) -> Any:
    """Register a function by name, for calls from programs; see `dlcompiler.register_func`.

    Its arrays are `NDArray`, which share the memory of the buffers and last as long as the call.
    """
    if callable(func_name):
        return register_func(func_name.__name__, func_name, override)

    def enter(function: Any) -> Any:
        if not callable(function):
            raise UserError(f"register {func_name}", "not a function", got=repr(function))

        @functools.wraps(function)
        def call(*args: Any) -> None:
            function(*(NDArray(a) if isinstance(a, np.ndarray) else a for a in args))

        registry.register_func(func_name, call, override=override)
        return function

    return enter if f is None else enter(f)


def get_global_func(name: str, allow_missing: bool = False) -> Callable[..., Any] | None:
    """Return the function registered under a name; None if it is missing and that is allowed."""
    found = registry.get_global_func(name, allow_missing)
    return getattr(found, "__wrapped__", found)
