"""Assign cores to building and to running, and test whether building disturbs runs."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from dlcompiler.runtime.options import Options
from dlcompiler.runtime.workers import Worker
from dlcompiler.target.detect import host

DISTURBED = 1.03
"""How much longer a kernel may take while something is built on another core."""

_ROUNDS = 7
_PULSE_S = 0.02
_LIMIT_S = 30.0
_LOOK_S = 0.03
_SAME_SHARE = 0.2  # of a core: less is no difference


@dataclass(frozen=True, slots=True)
class Cores:
    """The cores for running and for building."""

    run: tuple[int, ...]
    """Cores on which candidates run."""
    build: tuple[int, ...]
    """The other cores; empty if candidates use all."""

    @property
    def all(self) -> tuple[int, ...]:
        """All cores that this process may use."""
        return (*self.build, *self.run)


def cores_for(threads: int) -> Cores:
    """Choose the least busy cores to run candidates on `threads` threads; the others build.

    Of equally busy cores, the last ones run: operating systems use the first ones themselves.
    """
    allowed = host().cores
    count = min(max(threads, 1), len(allowed))
    if count == len(allowed) or not hasattr(os, "sched_setaffinity"):
        return Cores(allowed[-count:], allowed[:-count])
    with ThreadPoolExecutor(1) as other:  # in another thread, so that this one is not pinned
        shares = dict(zip(allowed, other.map(share_of, allowed), strict=True))
    ordered = sorted(allowed, key=lambda core: (round(shares[core] / _SAME_SHARE), core))
    run = tuple(sorted(ordered[-count:]))
    return Cores(run, tuple(core for core in allowed if core not in run))


def share_of(core: int) -> float:
    """Pin this thread to a core, and return the share of it that the thread gets within 30 ms."""
    with contextlib.suppress(OSError):  # the core was taken from the process
        os.sched_setaffinity(0, {core})
    start, own = time.perf_counter(), time.thread_time()
    while time.perf_counter() < start + _LOOK_S:
        pass
    return (time.thread_time() - own) / (time.perf_counter() - start)


_known: dict[Cores, float] = {}


def builds_disturb(builder: Worker, runner: Worker, cores: Cores, options: Options) -> bool:
    """Tell whether building on some cores slows down runs on other cores by more than 3 %.

    Hardware threads of one physical core disturb each other, and so may a shared cache or power
    limit. The test runs once in a process, and takes less than a second.
    """
    if cores not in _known:
        _known[cores] = _slowdown(builder, runner, cores, options)
    return _known[cores] > DISTURBED


def _slowdown(builder: Worker, runner: Worker, cores: Cores, options: Options) -> float:
    """Return the median ratio of a kernel's times: during builds divided by alone."""
    compiling = {"options": dataclasses.asdict(options), "cores": list(cores.build)}
    running = {
        "options": dataclasses.asdict(options),
        "cores": list(cores.run),
        "seconds": _PULSE_S,
    }

    def pulse() -> float:
        outcome = runner.call("pulse", running, data=PULSE.encode(), timeout_s=_LIMIT_S)
        median_s: float = outcome.unwrap("try the machine")["median_s"]
        return median_s

    def build_until(done: threading.Event) -> None:
        while not done.is_set():
            text = LONG.encode()
            builder.call("compile", compiling, data=text, timeout_s=_LIMIT_S)

    pulse()
    ratios = []
    for _ in range(_ROUNDS):
        alone = pulse()
        done = threading.Event()
        thread = threading.Thread(target=build_until, args=(done,), daemon=True)
        thread.start()
        beside = pulse()
        done.set()
        thread.join()
        ratios.append(beside / alone)
    return statistics.median(ratios)


PULSE_BYTES = 1 << 20
"""What the kernel of a trial reads: more than a core's own caches hold."""

PULSE = f"""
define void @pulse(ptr %A, ptr %C) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi <8 x float> [ zeroinitializer, %entry ], [ %more, %loop ]
  %place = getelementptr float, ptr %A, i64 %i
  %a = load <8 x float>, ptr %place, align 4
  %more = call <8 x float> @llvm.fma.v8f32(<8 x float> %a, <8 x float> %a, <8 x float> %sum)
  %next = add i64 %i, 8
  %again = icmp ult i64 %next, {PULSE_BYTES // 4}
  br i1 %again, label %loop, label %end
end:
  store <8 x float> %more, ptr %C, align 4
  ret void
}}
declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
"""


def _long(count: int) -> str:
    """Return a text that takes some tens of milliseconds to compile."""
    lines = [
        f"  %a{n} = load <8 x float>, ptr getelementptr (i8, ptr @data, i64 {32 * n}), align 4\n"
        f"  %s{n} = call <8 x float> @llvm.fma.v8f32"
        f"(<8 x float> %a{n}, <8 x float> %a{n // 2}, <8 x float> %a{n // 3})\n"
        f"  store <8 x float> %s{n}, ptr %C, align 4"
        for n in range(count)
    ]
    head = f"@data = internal global [{32 * count} x i8] zeroinitializer\n"
    declared = "declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)\n"
    body = "\n".join(lines)
    return f"{head}define void @long(ptr %C) {{\n{body}\n  ret void\n}}\n{declared}"


LONG = _long(400)
