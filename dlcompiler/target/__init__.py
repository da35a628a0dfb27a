"""Descriptions of machines (targets): detected for this machine, or presets by name.

`resolve` returns the `Target` of a name in `REGISTRY`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from difflib import get_close_matches
from functools import cache

from dlcompiler.errors import TargetError
from dlcompiler.registry import Registry
from dlcompiler.target.accelerators import (
    Accelerator,
    Engine,
    Instruction,
    Memory,
    MemoryPort,
    TokenQueue,
    copy,
    tensor_op,
)
from dlcompiler.target.accelerators.model import in_use as accelerators_in_use
from dlcompiler.target.accelerators.model import scopes as accelerator_scopes
from dlcompiler.target.gpus import with_architecture
from dlcompiler.target.model import CacheLevel, MemoryScope, Target

__all__ = [
    "REGISTRY",
    "Accelerator",
    "CacheLevel",
    "Engine",
    "Instruction",
    "Memory",
    "MemoryPort",
    "MemoryScope",
    "Target",
    "TokenQueue",
    "copy",
    "cuda",
    "is_known_scope",
    "known_scopes",
    "names",
    "opencl",
    "resolve",
    "similar_scopes",
    "tensor_op",
]

GPUS = (
    *("gtx-titan-x", "gtx-980", "gtx-980-ti"),
    *("p100", "titan-x-pascal", "gtx-1060", "gtx-1070", "gtx-1080", "gtx-1080-ti"),
    *("v100", "t4", "gtx-1650", "gtx-1660-ti", "rtx-2060", "rtx-2060-super", "rtx-2070"),
    *("rtx-2070-super", "rtx-2080", "rtx-2080-super", "rtx-2080-ti", "titan-rtx"),
    *("a100", "a100-sxm", "a30", "a2", "a10", "a40", "rtx-a2000", "rtx-a4000", "rtx-a4500"),
    *("rtx-a5000", "rtx-a5500", "rtx-a6000", "rtx-3050", "rtx-3060", "rtx-3060-ti"),
    *("rtx-3070", "rtx-3070-ti"),
    *("rtx-3080", "rtx-3080-ti", "rtx-3090", "rtx-3090-ti"),
    *("l4", "l40", "l40s", "rtx-6000-ada", "rtx-4060-laptop", "rtx-4060", "rtx-4060-ti"),
    *("rtx-4070", "rtx-4070-super", "rtx-4070-ti", "rtx-4080", "rtx-4080-super", "rtx-4090"),
    *("h100", "h100-pcie", "h200"),
)
"""Models of NVIDIA, which are simulated: the rows of `dlcompiler.target.gpu_rates.MODELS`."""

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
        "vta-pynq": "dlcompiler.target.accelerators.presets:PYNQ",
        "vta-ultra96": "dlcompiler.target.accelerators.presets:ULTRA96",
        "vta-de10": "dlcompiler.target.accelerators.presets:DE10",
        "vdla-paper": "dlcompiler.target.accelerators.presets:VDLA_PAPER",
        "mali-t860": "dlcompiler.target.mali:MALI_T860",
        "opencl": "dlcompiler.target.gpus:OPENCL",
        "cuda": "dlcompiler.target.gpus:CUDA",
    },
)
for _name in GPUS:
    REGISTRY[_name] = f"dlcompiler.target.gpus:{_name.upper().replace('-', '_')}"

SEVERAL = ("cuda", "opencl")
"""Targets of which this machine may have several devices."""
_SM = re.compile(r"sm_[1-9][0-9]{1,2}")


def names() -> tuple[str, ...]:
    """Return the names that `resolve` accepts."""
    return tuple(REGISTRY)


def resolve(target: str | Target | Accelerator) -> Target:
    """Return the target of a name; a `Target` is returned unchanged.

    Parameters
    ----------
    target : str, Target or Accelerator
        ``"cpu"`` is this machine, ``"c"`` any machine with a C compiler; `names` lists all.
        ``"cuda:1"`` is the second GPU, ``"cuda -arch=sm_80"`` one of at least this architecture.

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
    if isinstance(target, Accelerator):
        return target.target
    if target not in REGISTRY and isinstance(target, str):
        if " " in target.strip():
            return _with_architecture(target)
        if ":" in target:
            return _with_number(target)
    if target not in REGISTRY and any(each.name == target for each in accelerators_in_use()):
        raise TargetError(
            "resolve a target", "the accelerator of this name is not in the registry",
            got=repr(target),
            hint=f"pass it itself, target={target}, if this is its variable; or enter it: "
            f"target.REGISTRY[{target!r}] = {target}.target",
        )  # fmt: skip
    found = REGISTRY.find(target, "resolve a target", error=TargetError)
    made = _called(target, found) if callable(found) else found
    if not isinstance(made, Target):
        raise TargetError(
            "resolve a target", f"the registry has no target under the name {target!r}",
            got=repr(made), expected="a Target, or a function that returns one",
        )  # fmt: skip
    return made


def cuda(number: int = 0) -> Target:
    """Return the target of one of several NVIDIA GPUs of this machine, ``"cuda:1"``.

    Parameters
    ----------
    number : int
        Which one, from 0, in the order of ``CUDA_VISIBLE_DEVICES``.
    """
    return _with_number(f"cuda:{number}")


def opencl(number: int = 0) -> Target:
    """Return the target of one of several OpenCL devices of this machine, ``"opencl:1"``.

    Parameters
    ----------
    number : int
        Which one, from 0; GPUs come before other devices.
    """
    return _with_number(f"opencl:{number}")


def _with_number(text: str) -> Target:
    """Return the target of one of several devices of a kind."""
    name, _, number = text.partition(":")
    if name not in SEVERAL or not (number.isascii() and number.isdecimal()):
        raise TargetError(
            "resolve a target", "not a device of this machine", got=repr(text),
            expected=", ".join(f"'{each}:0', '{each}:1'" for each in SEVERAL) + ", …",
        )  # fmt: skip
    base = resolve(name)
    if int(number) == 0:
        return base
    return replace(base, name=f"{name}:{int(number)}", runs_on=f"{base.runs_on}:{int(number)}")


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
    return with_architecture(base, f"{name} -arch={value}", value)


def known_scopes() -> frozenset[str]:
    """Return the names of the memory scopes of all targets in the registry.

    The memories of accelerators are left out. So are targets that are detected at first use: they
    are CPUs, with the scopes of presets.
    So are entries that cannot be imported: they refuse their own use.
    """
    processors = (target for target in _importable() if target.accelerator is None)
    return frozenset(scope.name for target in processors for scope in target.scopes)


def is_known_scope(name: str) -> bool:
    """Tell whether a target in the registry has a memory scope, without listing those of all.

    Parameters
    ----------
    name : str
        Name of the scope: ``"shared"``.
    """
    if name in accelerator_scopes():
        return True
    return any(scope.name == name for target in _importable() for scope in target.scopes)


def similar_scopes(name: str) -> tuple[str, ...]:
    """Return memories of accelerators whose names, as scopes, are similar to a name.

    Parameters
    ----------
    name : str
        What somebody wrote.

    Examples
    --------
    >>> similar_scopes("vta-pynq.imp")[0], similar_scopes("shraed")
    ('vta-pynq.inp', ())
    """
    known = sorted({*accelerator_scopes(), *_scopes_of_presets()})
    machine, _, memory = name.partition(".")
    same = [s for s in known if s.startswith(f"{machine}.") or s.partition(".")[2] == name]
    found = dict.fromkeys([*get_close_matches(name, known, 3, 0.7), *same])
    return tuple(found)[: 6 if memory else 4]


def _scopes_of_presets() -> Iterator[str]:
    for target in _importable():
        machine = target.accelerator
        if machine is not None:
            yield from (machine.scope_of(memory.name) for memory in machine.memories)


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
