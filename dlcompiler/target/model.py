"""Data classes that describe a machine."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from dlcompiler import dtypes
from dlcompiler.display import render
from dlcompiler.errors import TargetError


@dataclass(frozen=True, slots=True)
class CacheLevel:
    """One level of the data caches.

    Examples
    --------
    >>> print(CacheLevel("L2", 512 * 1024, line=64, shared_by=1))
    L2 512 KiB
    """

    name: str
    """``"L1d"``, ``"L2"``, ``"L3"``, …"""
    bytes: int
    """Capacity of one instance [byte]."""
    line: int
    """Line size [byte]."""
    shared_by: int
    """Number of logical cores that use one instance."""
    ways: int = 8
    """Lines of one set (associativity); 8, as in many processors, if it is not known; [1]."""

    def __post_init__(self) -> None:
        _check_fields(self, "cache level")

    def __str__(self) -> str:
        whole_mib = self.bytes % (1 << 20) == 0
        size = f"{self.bytes >> 20} MiB" if whole_mib else f"{self.bytes / 1024:g} KiB"
        return f"{self.name} {size}"


@dataclass(frozen=True, slots=True)
class MemoryScope:
    """A kind of memory in which buffers are allocated."""

    name: str
    """``"global"``, ``"local"``, …"""
    rank: int
    """Distance from memory, as in TVM: global 0, shared 1, warp 2, local 3."""
    capacity: int | None
    """Largest buffer [byte]; ``None``: only memory limits it."""
    alignment: int
    """Alignment of buffers that the compiler allocates here [byte]."""
    element_bytes: int = 1
    """Size that accesses must be a multiple of [byte]; above 1 only on accelerators."""
    accessible_by: tuple[str, ...] = ("cpu",)
    """What can access it: the ``cpu`` or ``gpu``, the threads of a ``block`` or a ``warp``, or one
    ``thread``."""

    def __post_init__(self) -> None:
        _check_fields(self, "memory scope")


@dataclass(frozen=True, slots=True)
class Rate:
    """A number that determines times on a machine, and where it comes from."""

    value: float
    unit: str
    """``"1/clock"``, ``"byte/s"``, …"""
    source: str
    """The document that gives it, or what was assumed."""

    def __post_init__(self) -> None:
        _check_fields(self, "rate")
        if not 0 < self.value < math.inf:
            raise TargetError(
                "describe a rate", "it is not positive", got=f"{self.value} {self.unit}"
            )


@dataclass(frozen=True, slots=True)
class Target:
    """A machine for which code is generated.

    Examples
    --------
    >>> from dlcompiler.target.presets import X86_64_AVX2
    >>> X86_64_AVX2
    Target('x86-64-avx2', cpu='x86-64-v3', 256-bit vectors, cores=1)
    """

    name: str
    """Name in the registry, or chosen by the user."""
    device: str
    """Kind of machine, which selects the passes: ``"cpu"``, ``"gpu"``, …"""
    language: str
    """The generated language: ``"llvm"``, ``"c"``, or ``"loops"`` for loop IR to simulate."""
    triple: str
    """LLVM's target triple; empty if the language is C."""
    cpu: str
    """LLVM's name of the processor; empty if the language is C."""
    features: tuple[str, ...]
    """LLVM's features beyond what ``cpu`` implies, each ``"+name"`` or ``"-name"``."""
    vector_extension: str
    """Name of its vector instructions: ``"AVX2"``, ``"NEON"``, …; ``"none"``."""
    vector_bits: int
    """Width of a vector register [bit]."""
    vector_registers: int
    """Number of vector registers of one thread; [1]."""
    cores: int
    """Threads of a parallel loop by default; on a GPU, the number of multiprocessors; [1]."""
    caches: tuple[CacheLevel, ...]
    """Data caches, nearest first."""
    scopes: tuple[MemoryScope, ...]
    """Memory scopes, in the order of their ranks."""
    thread_axes: tuple[str, ...] = ()
    """Axes of a launch that loops can be bound to: ``"blockIdx.x"``, …; none on a CPU."""
    emits: frozenset[str] = frozenset()
    """What generated code may contain beyond loops and scalar operations: ``"vectors"``,
    ``"prefetch"``, and the names of emitters of tensor intrinsics."""
    also_in: tuple[str, ...] = ()
    """Languages in which its programs can be read, too; each text is generated when it is read."""
    runs_on: str = "host"
    """Name of the device that runs the code here: see `dlcompiler.pipeline.devices`."""
    limits: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """``max_lanes``: lanes of one vector value; ``max_stack_bytes``: stack buffers of a kernel. A
    GPU's: see `dlcompiler.target.gpus`. What it does not name has no limit: see `limit`."""
    limits_from: str = ""
    """The document that gives the limits; '' if they are the compiler's own."""
    rates: Mapping[str, Rate] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Rates and latencies, from which times on a simulated machine are predicted: see
    `dlcompiler.target.gpu_rates`. Without them no times are predicted."""
    accelerator: Any = field(default=None, hash=False)
    """The `dlcompiler.target.Accelerator` that this is the target of; None for other machines."""

    def __post_init__(self) -> None:
        _check_fields(self, "target")
        if self.cores < 1:
            raise TargetError(
                "describe a target", "it has no core", got=str(self.cores), expected="at least 1"
            )

    def lanes(self, dtype: str) -> int:
        """Return the number of elements of a dtype that fit in one vector register.

        Parameters
        ----------
        dtype : str
            A scalar dtype; for a vector dtype, its element is used.
        """
        return max(self.vector_bits // (8 * dtypes.bytes_of(dtypes.element(dtype))), 1)

    def cache_bytes(self, level: int) -> int:
        """Return the size of a data cache [byte]; if `level` does not exist, of the last level.

        Parameters
        ----------
        level : int
            0 is the first level, -1 the last.

        Examples
        --------
        >>> from dlcompiler.target.presets import CORTEX_A53
        >>> [CORTEX_A53.cache_bytes(level) >> 10 for level in (0, 1, 2, -1)]
        [32, 512, 512, 512]
        """
        if not self.caches:
            return 0
        return self.caches[min(level, len(self.caches) - 1)].bytes

    def limit(self, name: str) -> float:
        """Return a limit by its name; infinite if the target does not give it.

        Examples
        --------
        >>> from dlcompiler.target.presets import CORTEX_A53
        >>> CORTEX_A53.limit("max_lanes"), CORTEX_A53.limit("max_vthreads")
        (64, inf)
        """
        return self.limits.get(name, math.inf)

    def has(self, feature: str) -> bool:
        """Tell whether ``features`` lists a feature: ``has("fma")``.

        Features that ``cpu`` implies without being listed are not found. The detected target and
        the presets list all features that the compiler uses.
        """
        return f"+{feature}" in self.features

    def scope(self, name: str) -> MemoryScope | None:
        """Return the memory scope of this name, or ``None``."""
        return next((scope for scope in self.scopes if scope.name == name), None)

    def __repr__(self) -> str:
        if self.accelerator is not None:
            return f"Target({self.name!r}, {self.accelerator!r})"
        return (
            f"Target({self.name!r}, cpu={self.cpu!r}, {self.vector_bits}-bit vectors,"
            f" cores={self.cores})"
        )

    def _repr_html_(self) -> str:
        if self.accelerator is not None:
            return render("accelerator", self.accelerator)
        return render("target", self)


def _is_integer(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _tuple_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, tuple) and all(isinstance(each, kind) for each in value)


_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "str": _is_text,
    "int": _is_integer,
    "float": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "int | None": lambda value: value is None or _is_integer(value),
    "tuple[str, ...]": _tuple_of(str),
    "tuple[CacheLevel, ...]": _tuple_of(CacheLevel),
    "tuple[MemoryScope, ...]": _tuple_of(MemoryScope),
    "frozenset[str]": lambda value: isinstance(value, frozenset) and all(map(_is_text, value)),
    "Mapping[str, int]": lambda value: (
        isinstance(value, Mapping)
        and all(_is_text(key) and _is_integer(number) for key, number in value.items())
    ),
    "Mapping[str, Rate]": lambda value: (
        isinstance(value, Mapping)
        and all(_is_text(key) and isinstance(rate, Rate) for key, rate in value.items())
    ),
}
"""Annotation of a field -> whether a value fits it."""


def _check_fields(item: Any, noun: str) -> None:
    """Refuse a value that does not have the type of its field.

    Raises
    ------
    TargetError
        The message names the field.
    """
    for each in fields(item):
        value = getattr(item, each.name)
        if each.type != "Any" and not _CHECKS[str(each.type)](value):
            raise TargetError(
                f"describe a {noun}", f"the field {each.name!r} has a wrong type",
                got=f"{value!r:.200} ({type(value).__name__})", expected=str(each.type),
            )  # fmt: skip
