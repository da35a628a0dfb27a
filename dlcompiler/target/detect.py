"""Detection of the machine that this process runs on.

A file that cannot be read is not an error: a typical value is used, and `HostCPU.assumed` names it.
Only `host` and `cpu_model` are cached.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import sys
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from dlcompiler.target.model import CacheLevel, Target
from dlcompiler.target.presets import TYPICAL_CACHES, cpu_target

if sys.platform != "win32":
    import resource

_CPUS = Path("/sys/devices/system/cpu")
_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class HostCPU:
    """The processor of this machine, as the operating system describes it."""

    model: str
    """The manufacturer's name."""
    llvm_cpu: str
    """LLVM's name."""
    triple: str
    """LLVM's target triple of this process."""
    features: tuple[str, ...]
    """All of LLVM's features with their signs: a virtual machine may hide what the name implies."""
    cores: tuple[int, ...]
    """Numbers of the logical cores that this process may use."""
    core_groups: tuple[tuple[int, ...], ...]
    """Those numbers, grouped by physical core."""
    quota: float | None
    """CPU time that the container may use, in cores; ``None``: no limit."""
    caches: tuple[CacheLevel, ...]
    """Data caches of the first core."""
    assumed: tuple[str, ...]
    """Fields that could not be read, and hold typical values: ``"caches"``, ``"core_groups"``."""

    @property
    def shares_cores(self) -> bool:
        """Whether two logical cores are hardware threads (SMT) of one physical core.

        A virtual machine may hide this: then it is false, although they may be.
        """
        return any(len(group) > 1 for group in self.core_groups)


@cache
def host() -> HostCPU:
    """Describe the processor of this machine; the first call imports llvmlite."""
    llvm = importlib.import_module("llvmlite.binding")
    flags = llvm.get_host_cpu_features()
    cores = _affinity()
    caches, groups = _caches(cores[0]), _groups(cores)
    assumed = (("caches",) if caches is None else ()) + (("core_groups",) if groups is None else ())
    return HostCPU(
        model=cpu_model(),
        llvm_cpu=llvm.get_host_cpu_name(),
        triple=llvm.get_process_triple(),
        features=tuple(f"{'+' if on else '-'}{name}" for name, on in sorted(flags.items())),
        cores=cores,
        core_groups=groups or tuple((core,) for core in cores),
        quota=_quota(),
        caches=caches or TYPICAL_CACHES,
        assumed=assumed,
    )


def host_target() -> Target:
    """Return the target ``"cpu"``: this machine."""
    cpu = host()
    return cpu_target(
        "cpu",
        cpu.triple,
        cpu.llvm_cpu,
        cpu.features,
        cores=available_cores(),
        caches=cpu.caches,
    )


def available_cores() -> int:
    """Return the number of threads that can run at once, limited by affinity and CPU quota."""
    quota = _quota()
    cores = len(_affinity())
    return cores if quota is None else max(1, min(cores, round(quota)))


def available_memory_bytes() -> int | None:
    """Return the memory that this process may use [byte]; None if it is unknown."""
    limits = [_read(_CGROUP / "memory.max"), _read(_CGROUP / "memory/memory.limit_in_bytes")]
    found = [int(limit) for limit in limits if limit.isdigit()]
    with contextlib.suppress(ValueError, OSError, AttributeError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    if sys.platform != "win32":
        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        found += [soft] if soft != resource.RLIM_INFINITY else []
    return min(found, default=None)


def _affinity() -> tuple[int, ...]:
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(os.getpid())))  # of the main thread
    return tuple(range(os.cpu_count() or 1))


def _quota() -> float | None:
    """Read the CPU quota of the process from cgroup v2 or v1."""
    words = _read(_CGROUP / "cpu.max").split()
    if not words:
        v1 = _CGROUP / "cpu"
        words = [_read(v1 / "cpu.cfs_quota_us"), _read(v1 / "cpu.cfs_period_us")]
    if len(words) != 2 or not all(word.isdigit() for word in words) or int(words[1]) == 0:
        return None  # "max", "-1" or nothing: unlimited
    return int(words[0]) / int(words[1])


def _groups(cores: tuple[int, ...]) -> tuple[tuple[int, ...], ...] | None:
    groups = set()
    for core in cores:
        siblings = _numbers(_read(_CPUS / f"cpu{core}/topology/thread_siblings_list"))
        if core not in siblings:
            return None
        groups.add(tuple(number for number in siblings if number in cores))
    return tuple(sorted(groups))


def _caches(core: int) -> tuple[CacheLevel, ...] | None:
    levels = []
    for folder in sorted((_CPUS / f"cpu{core}/cache").glob("index[0-9]*")):
        kind, level = _read(folder / "type"), _read(folder / "level")
        size, line = _read(folder / "size"), _read(folder / "coherency_line_size")
        if kind not in ("Data", "Unified") or not size.endswith("K") or not line.isdigit():
            continue
        name = f"L{level}d" if kind == "Data" else f"L{level}"
        shared_by = len(_numbers(_read(folder / "shared_cpu_list"))) or 1
        made = CacheLevel(name, int(size[:-1]) * 1024, int(line), shared_by)
        ways = _read(folder / "ways_of_associativity")
        if ways.isdigit():  # 0: a line may be in any place
            made = replace(made, ways=int(ways) or made.bytes // max(made.line, 1))
        levels.append(made)
    return tuple(levels) or None


@cache
def cpu_model() -> str:
    """Return the model name of the processor. Unlike `host`, this imports nothing."""
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def _numbers(text: str) -> tuple[int, ...]:
    """Parse a list of numbers in the kernel's format: ``"0-2,5"`` is ``(0, 1, 2, 5)``."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
