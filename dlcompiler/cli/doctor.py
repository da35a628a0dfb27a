"""``dlcompiler doctor``: report what works on this machine, and the reasons for what does not."""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
from collections.abc import Iterator

from dlcompiler.cli.command import Command
from dlcompiler.pipeline import device_of
from dlcompiler.runtime import llvm, object_cache, private_folders
from dlcompiler.runtime.c_source import c_compiler
from dlcompiler.runtime.workers import Worker
from dlcompiler.target import resolve
from dlcompiler.target.detect import HostCPU, available_cores, host
from dlcompiler.terminal import show

SHOWN_FEATURES = ("sse4.2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512vl", "neon", "sve")
NOTEBOOK = ("jupyterlab", "ipywidgets", "anywidget", "ipykernel", "matplotlib")
MODELS = ("xgboost", "xgboost-cpu")


def run(args: argparse.Namespace) -> int:
    """Print the report; return 1 if kernels cannot run here."""
    del args
    works = True
    for title, text in report():
        first, *rest = text.split("\n")
        show(f"{title:<10} {first}", *(f"{'':<10} {line}" for line in rest))
        works = works and not text.startswith("FAILS")
    return 0 if works else 1


def report() -> Iterator[tuple[str, str]]:
    """Yield the lines of the report as (subject, text)."""
    cpu = host()
    yield "system", f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    yield "cpu", describe_cpu(cpu)
    yield "cache", ", ".join(str(level) for level in cpu.caches) + _assumed(cpu, "caches")
    yield "target", repr(resolve("cpu"))
    yield "llvm", f"{llvm.version()} (llvmlite {_version('llvmlite')})"
    yield "objects", _objects()
    yield "leftovers", _leftovers()
    yield "c", _c_compiler()
    yield "worker", _worker()
    yield "cuda", _device("cuda")
    yield "opencl", _device("opencl")
    yield "gpu", "simulated: target='gpu', or the name of a model"
    yield "model", _cost_model()
    yield "notebook", ", ".join(f"{name} {_version(name) or 'not installed'}" for name in NOTEBOOK)


def describe_cpu(cpu: HostCPU) -> str:
    """Describe the processor: name, vector extensions, and cores, which may be hardware threads."""
    features = {name[1:] for name in cpu.features if name.startswith("+")}
    shown = " ".join(name for name in SHOWN_FEATURES if name in features) or "no vector extension"
    if "core_groups" in cpu.assumed:
        sharing = "it is not known whether they share a physical core"
    elif cpu.shares_cores:
        sharing = "some are hardware threads of one physical core"
    else:
        sharing = "according to the system, none share a physical core"
    if len(cpu.cores) == 1:
        sharing = "no parallel speed-up here"
    quota = "" if cpu.quota is None else f", limited to {cpu.quota:g} cores' time"
    return f"{cpu.model} ({cpu.llvm_cpu}), {shown}\n{available_cores()} cores: {sharing}{quota}"


def _assumed(cpu: HostCPU, what: str) -> str:
    return " (typical values: not readable here)" if what in cpu.assumed else ""


def _objects() -> str:
    """Return a text that says where compiled objects are cached."""
    cache = object_cache.current()
    if cache is None:
        return f"not kept: {object_cache.VARIABLE} is {object_cache.OFF}"
    if problem := cache.problem():
        return f"not kept: {problem}"
    count, size = cache.size()
    return f"{count} kept in {cache.folder}, {size / (1 << 20):.1f} MiB"


def _leftovers() -> str:
    """Return a text about the temporary folders that killed processes have left."""
    found = private_folders.abandoned()
    if not found:
        return "none: no killed process has left arrays in memory or on the disk"
    size = sum(map(private_folders.size_bytes, found))
    places = ", ".join(sorted({str(folder.parent) for folder in found}))
    return (
        f"{len(found)} folders of processes that were killed, {size / (1 << 20):.1f} MiB, in "
        f"{places}; the next measurement removes them"
    )


def _c_compiler() -> str:
    """Return a text that names the C compiler for kernels in C."""
    found = c_compiler()
    if found is None:
        return "no C compiler (cc, gcc or clang): target='c' gives source that cannot be called"
    return f"{found}: kernels of target='c' can be called"


def _worker() -> str:
    """Start a worker process, and return a text that says whether it answers."""
    with Worker() as worker:
        outcome = worker.call("ping", {"hello": 1}, timeout_s=60)
    if outcome.ok:
        return "a worker process answers: kernels are verified and measured there"
    return f"FAILS: {outcome.kind}: {outcome.message}"


def _device(name: str) -> str:
    """Return a text about the device of a target: its name, or the reason why it is not here."""
    target = resolve(name)
    device = device_of(target)
    if reason := device.why_unavailable():
        return f"none: {reason}"
    found = device.times(target)
    assert found is not None
    return f"{found.on}: kernels of target={name!r} run there"


def _cost_model() -> str:
    installed = [name for name in MODELS if _version(name)]
    if not installed:
        return "xgboost is not installed: the tuner uses a ridge model"
    text = ", ".join(f"{name} {_version(name)}" for name in installed)
    if len(installed) > 1:
        text += "\nboth install the same module: uninstall both, then install one"
    return text


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _no_arguments(parser: argparse.ArgumentParser) -> None:
    del parser


COMMAND = Command(
    "check what works on this machine, and why something does not", _no_arguments, run
)
