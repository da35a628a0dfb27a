"""The functions that this process has registered, which programs may call by name.

A file (a trace, a log, a saved library) can only name a function. The name is looked up here when
its code is loaded, and again when the function is called.
"""

from __future__ import annotations

import ctypes
import re
import threading
from _ctypes import CFuncPtr
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from dlcompiler.errors import UserError

F = TypeVar("F", bound=Callable[..., Any])

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,200}")
_functions: dict[str, Callable[..., Any]] = {}
_addresses: dict[str, int] = {}
_lock = threading.Lock()
"""Makes the check and the registration of a name one step for all threads."""
_kept: list[object] = []
"""Replaced C functions; they are kept, because loaded code may still call them."""


@overload
def register_func(name: str, f: F, *, override: bool = False) -> F: ...
@overload
def register_func(name: str | F, f: None = None, *, override: bool = False) -> Callable[[F], F]: ...
def register_func(name: Any, f: Any = None, *, override: bool = False) -> Any:
    """Register a Python function under a name by which programs call it (`call_packed`).

    Parameters
    ----------
    name : str
        Letters, digits and ``_ . : -``; as a decorator without a name, the function's own.
    f : callable, optional
        Gets NumPy arrays, which share the memory of the buffers and last as long as the call, and
        numbers. It writes its results into arrays. Without it, the result is a decorator.
    override : bool
        Whether to replace the function of that name, also for kernels that are already loaded.

    Raises
    ------
    UserError
        If the name cannot be one, or is taken.

    Examples
    --------
    >>> @register_func("docs.double", override=True)
    ... def double(a, b):
    ...     b[...] = 2 * a
    >>> get_global_func("docs.double") is double
    True
    """
    if callable(name):
        return register_func(name.__name__, name, override=override)
    _check(name, override, _functions)

    def enter(function: F) -> F:
        if not callable(function):
            raise UserError(f"register {name}", "not a function", got=repr(function))
        with _lock:
            _check(name, override, _functions)
            _functions[name] = function
        return function

    return enter if f is None else enter(f)


def get_global_func(name: str, allow_missing: bool = False) -> Callable[..., Any] | None:
    """Return the function registered under a name.

    Parameters
    ----------
    name : str
        The name.
    allow_missing : bool
        Whether to return None if there is none.

    Raises
    ------
    UserError
        If there is none, unless `allow_missing`.
    """
    found = _functions.get(name)
    if found is None and not allow_missing:
        raise _missing(name, "register_func", _functions)
    return found


def list_global_func_names() -> list[str]:
    """Return the names of all registered functions."""
    return sorted(_functions)


def remove_global_func(name: str) -> None:
    """Remove the function of a name; a kernel that calls it then raises an error."""
    get_global_func(name)
    del _functions[name]


def register_extern(name: str, function: Any, *, override: bool = False) -> None:
    """Register a C function under a name by which programs call it (`call_extern`).

    Parameters
    ----------
    name : str
        As for `register_func`.
    function : ctypes function or int
        The function, or its address. Nothing checks what it takes: a wrong call ends the process.
    override : bool
        Whether to replace the function of that name, for kernels loaded from now on.

    Raises
    ------
    UserError
        If the name cannot be one, or is taken.
    """
    address = function if type(function) is int else None
    if isinstance(function, CFuncPtr):
        address = ctypes.cast(function, ctypes.c_void_p).value
    if not address:
        raise UserError(
            f"register {name}", "not a function of C", got=repr(function),
            expected="a function of a ctypes library, or an address",
        )  # fmt: skip
    with _lock:
        _check(name, override, _addresses)
        _kept.append(function)
        _addresses[name] = address


def extern_address(name: str) -> int:
    """Return the address of the C function registered under a name.

    Raises
    ------
    UserError
        If there is none.
    """
    if name not in _addresses:
        raise _missing(name, "register_extern", _addresses)
    return _addresses[name]


def _check(name: object, override: bool, known: Mapping[str, object]) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise UserError(
            "register a function", "not usable as a name", got=repr(name),
            expected="letters, digits and '_', '.', ':', '-'",
        )  # fmt: skip
    if name in known and not override:
        raise UserError(
            f"register {name}", "the name is taken", got=repr(known[name]),
            hint="override=True replaces the function",
        )  # fmt: skip


def _missing(name: object, where: str, known: Mapping[str, object]) -> UserError:
    return UserError(
        f"call {name}", "no function of that name is registered in this process",
        got=", ".join(sorted(known)[:10]) or "none is", hint=f"call {where}({name!r}, …) first",
    )  # fmt: skip
