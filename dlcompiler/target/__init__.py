"""Descriptions of machines (targets): detected for this machine, or presets by name.

`resolve` returns the `Target` of a name in `REGISTRY`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

from dlcompiler.errors import TargetError
from dlcompiler.registry import Registry
from dlcompiler.target.model import CacheLevel, MemoryScope, Target

__all__ = [
    "REGISTRY",
    "CacheLevel",
    "MemoryScope",
    "Target",
    "known_scopes",
    "names",
    "resolve",
]

REGISTRY: Registry[Target | Callable[[], Target]] = Registry(
    "target",
    {
        "cpu": "dlcompiler.target.detect:host_target",
        "x86-64-avx512": "dlcompiler.target.presets:X86_64_AVX512",
        "x86-64-avx2": "dlcompiler.target.presets:X86_64_AVX2",
        "x86-64-sse4": "dlcompiler.target.presets:X86_64_SSE4",
        "x86-64-sse2": "dlcompiler.target.presets:X86_64_SSE2",
        "aarch64": "dlcompiler.target.presets:AARCH64",
        "cortex-a53": "dlcompiler.target.presets:CORTEX_A53",
        "armv7": "dlcompiler.target.presets:ARMV7",
        "riscv64": "dlcompiler.target.presets:RISCV64",
        "wasm32": "dlcompiler.target.presets:WASM32",
        "c": "dlcompiler.target.presets:C99",
        "gpu": "dlcompiler.target.gpus:GPU",
        "gtx-titan-x": "dlcompiler.target.gpus:GTX_TITAN_X",
        "titan-x-pascal": "dlcompiler.target.gpus:TITAN_X_PASCAL",
        "gtx-1080": "dlcompiler.target.gpus:GTX_1080",
        "v100": "dlcompiler.target.gpus:V100",
        "a100": "dlcompiler.target.gpus:A100",
        "rtx-a6000": "dlcompiler.target.gpus:RTX_A6000",
        "rtx-4060-laptop": "dlcompiler.target.gpus:RTX_4060_LAPTOP",
        "h100": "dlcompiler.target.gpus:H100",
        "h200": "dlcompiler.target.gpus:H200",
        "opencl": "dlcompiler.target.gpus:OPENCL",
        "cuda": "dlcompiler.target.gpus:CUDA",
    },
)


_SM = re.compile(r"sm_[1-9][0-9]{1,2}")


def names() -> tuple[str, ...]:
    """Return the names that `resolve` accepts."""
    return tuple(REGISTRY)


def resolve(target: str | Target) -> Target:
    """Return the target of a name; a `Target` is returned unchanged.

    Parameters
    ----------
    target : str or Target
        ``"cpu"`` is this machine, ``"c"`` any machine with a C compiler; `names` lists all.

    Returns
    -------
    Target

    Raises
    ------
    TargetError
        If no target has this name.

    Examples
    --------
    >>> resolve("x86-64-avx2").lanes("float32")
    8
    """
    if isinstance(target, Target):
        return target
    if " " in str(target).strip() and target not in REGISTRY:
        return _with_architecture(target)
    found = REGISTRY.find(target, "resolve a target", error=TargetError)
    made = _called(target, found) if callable(found) else found
    if not isinstance(made, Target):
        raise TargetError(
            "resolve a target", f"the registry has no target under the name {target!r}",
            got=repr(made), expected="a Target, or a function that returns one",
        )  # fmt: skip
    return made


def _with_architecture(text: str) -> Target:
    """Return the target of a name and an architecture, as TVM writes it: ``cuda -arch=sm_90``."""
    name, *options = text.split()
    base = resolve(name)
    flag, _, value = options[0].partition("=")
    if base.language != "cuda" or len(options) > 1 or flag != "-arch" or not _SM.fullmatch(value):
        raise TargetError(
            "resolve a target", "not an option of a target", got=repr(text),
            expected="'cuda -arch=sm_80', or a name without options",
        )  # fmt: skip
    return replace(base, name=f"{name} -arch={value}", cpu=value)


def known_scopes() -> frozenset[str]:
    """Return the names of the memory scopes of all targets in the registry.

    Targets that are detected at first use are left out: they are CPUs, with the scopes of presets.
    So are entries that cannot be imported: they refuse their own use.
    """
    return frozenset(scope.name for target in _importable() for scope in target.scopes)


def _importable() -> Iterator[Target]:
    for name in REGISTRY:
        try:
            found = REGISTRY.find(name, "list the memory scopes", error=TargetError)
        except TargetError:
            continue
        if isinstance(found, Target):
            yield found


def _called(name: str, make: Callable[[], Target]) -> Target:
    """Return the target that a function of the registry makes, once."""
    try:
        return _made_by(make)
    except TargetError:
        raise
    except Exception as error:  # the function is a user's
        raise TargetError(
            "resolve a target", f"the function of the target {name!r} fails",
            because=f"{type(error).__name__}: {error}", hint="it is called without arguments",
        ) from error  # fmt: skip


@cache
def _made_by(make: Callable[[], Target]) -> Target:
    return make()
