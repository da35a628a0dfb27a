"""The external functions that machine code may call, listed by name and checked before linking.

Calling an undefined symbol would end the process. A name that is not listed here is therefore
refused when the module is compiled.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib
from collections.abc import Iterable
from functools import cache

from dlcompiler.errors import InternalError
from dlcompiler.runtime import callbacks, registry

_MATH = (
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign"),
    *("cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "floor", "fma", "fmax", "fmin"),
    *("fmod", "hypot", "ldexp", "lgamma", "log", "log10", "log1p", "log2", "nearbyint", "pow"),
    *("remainder", "rint", "round", "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc"),
)

#: Functions of the C library, by the name that machine code uses; ``f`` ends those for float32.
C_FUNCTIONS: frozenset[str] = frozenset(
    (
        *_MATH,
        *(f"{name}f" for name in _MATH),
        *("aligned_alloc", "free", "malloc", "memcpy", "memmove", "memset"),
        # called only by the runtime's own code
        *("clock_gettime", "syscall", "pthread_mutex_init", "pthread_mutex_lock"),
        *("pthread_mutex_unlock", "pthread_cond_init", "pthread_cond_wait"),
        *("pthread_cond_broadcast", "pthread_key_create", "pthread_getspecific"),
        *("pthread_setspecific", "posix_memalign", "madvise"),
    )
)

#: Functions of Python's stable interface, which only ``native/entry.ll`` calls.
PYTHON_FUNCTIONS: frozenset[str] = frozenset(
    {
        *("PyBytes_AsString", "PyBytes_FromStringAndSize", "PyObject_GetBuffer"),
        *("PyBuffer_Release", "PyObject_CallNoArgs", "PyErr_Clear", "Py_IncRef", "Py_DecRef"),
        *("PyEval_SaveThread", "PyEval_RestoreThread"),
    }
)

#: Functions of `dlcompiler.runtime.native`, which is itself compiled when one is first needed.
OWN_FUNCTIONS: frozenset[str] = frozenset(
    {
        *("dlc_parallel_for", "dlc_pool_hold", "dlc_pool_release"),
        *("dlc_workspace_alloc", "dlc_workspace_free"),
    }
)

PACKED, EXTERN = "dlc_packed.", "dlc_extern."
"""Begin the symbols of functions of Python and of C that this process has registered by name."""

#: Intrinsics that LLVM lowers on every CPU, without the types at the end of their names.
INTRINSICS: frozenset[str] = frozenset(
    f"llvm.{name}"
    for name in (
        # floating point
        *("ceil", "copysign", "cos", "exp", "exp10", "exp2", "fabs", "floor", "fma", "fmuladd"),
        *("log", "log10", "log2", "maximum", "maximumnum", "maxnum", "minimum", "minimumnum"),
        *("minnum", "nearbyint", "pow", "powi", "rint", "round", "roundeven", "sin", "sqrt"),
        *("trunc", "fptosi.sat", "fptoui.sat"),
        # integers
        *("abs", "bitreverse", "bswap", "ctlz", "ctpop", "cttz", "fshl", "fshr"),
        *("sadd.sat", "smax", "smin", "smul.with.overflow", "sadd.with.overflow", "ssub.sat"),
        *("ssub.with.overflow", "uadd.sat", "umax", "umin", "umul.with.overflow", "usub.sat"),
        # vectors
        *("masked.gather", "masked.load", "masked.scatter", "masked.store", "stepvector"),
        *("vector.extract", "vector.insert", "vector.interleave2", "vector.deinterleave2"),
        *(f"vector.reduce.{op}" for op in ("add", "and", "fadd", "fmax", "fmaximum", "fmin")),
        *(f"vector.reduce.{op}" for op in ("fminimum", "fmul", "mul", "or", "smax", "smin")),
        *(f"vector.reduce.{op}" for op in ("umax", "umin", "xor")),
        # memory and control
        *("assume", "expect", "lifetime.end", "lifetime.start", "memcpy", "memcpy.inline"),
        *("memmove", "memset", "memset.inline", "prefetch", "trap", "unreachable"),
        "x86.sse.sfence",
        *("dbg.declare", "dbg.label", "dbg.value", "stackrestore", "stacksave"),
        # tensor intrinsics, which the code generator calls where a machine has them
        *("x86.sse2.pmadd.wd", "x86.avx2.pmadd.wd", "x86.avx512.pmaddw.d.512"),
        "x86.avx512.vpdpbusd",
        # hints that a thread spins
        *("aarch64.hint", "x86.sse2.pause"),
    )
)


def is_known_intrinsic(name: str) -> bool:
    """Tell whether ``name`` is an intrinsic of `INTRINSICS`, with any type suffix.

    Examples
    --------
    >>> is_known_intrinsic("llvm.fma.v8f32"), is_known_intrinsic("llvm.fmaa.f32")
    (True, False)
    """
    parts = name.split(".")
    return any(".".join(parts[:count]) in INTRINSICS for count in range(2, len(parts) + 1))


def calls_outside(text: str) -> bool:
    """Tell whether code calls functions that must be registered in the process that runs it."""
    return (
        f"@{PACKED}" in text
        or f"@{EXTERN}" in text
        or f'@"{PACKED}' in text
        or (f'@"{EXTERN}' in text)
    )


def resolve(names: Iterable[str]) -> dict[str, int]:
    """Return the address of each external function that machine code declares.

    Parameters
    ----------
    names : iterable of str
        Declared functions; intrinsics are checked and left out of the result.

    Raises
    ------
    UserError
        A function that the code calls is not registered in this process.
    InternalError
        A function is not listed here, so generated code must not call it.
    """
    outside = [name for name in names if not is_known_intrinsic(name)]
    unknown = sorted(name for name in outside if _address(name) is None)
    if unknown:
        raise InternalError(
            "link machine code",
            "the code calls functions that nothing defines",
            got=", ".join(unknown),
            expected="functions of the runtime, of the C library, and intrinsics, listed in"
            " dlcompiler.runtime.externs",
        )
    return {name: address for name in outside if (address := _address(name)) is not None}


def _address(name: str) -> int | None:
    if name.startswith(PACKED):
        return callbacks.address(name.removeprefix(PACKED))
    if name.startswith(EXTERN):
        return registry.extern_address(name.removeprefix(EXTERN))
    return _known_address(name)


@cache
def _known_address(name: str) -> int | None:
    if name in OWN_FUNCTIONS:
        address: int = importlib.import_module("dlcompiler.runtime.native").address(name)
        return address
    if name in PYTHON_FUNCTIONS:
        return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    if name not in C_FUNCTIONS:
        return None
    # Python itself links the mathematics library on most systems; finding its file takes 0.1 s.
    found = getattr(ctypes.CDLL(None), name, None) or getattr(_math_library(), name, None)
    return None if found is None else ctypes.cast(found, ctypes.c_void_p).value


@cache
def _math_library() -> ctypes.CDLL:
    return ctypes.CDLL(ctypes.util.find_library("m"))
