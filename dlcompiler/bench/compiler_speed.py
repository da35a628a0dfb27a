"""Benchmarks of the compiler: the speed of its generated code, and of its own steps.

The command line calls the results ``figures``.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from dlcompiler.bench.compiling import default_gemm, time_build
from dlcompiler.bench.featurising import SUBJECTS, time_featurising
from dlcompiler.bench.lowering import lowering_slope, step_cost, time_lowering
from dlcompiler.bench.programs import packed_conv2d, six_step_gemm, tiled_gpu_gemm
from dlcompiler.bench.quickstart import plain, register_tile
from dlcompiler.bench.threads import TIMEOUT, alternation, dispatch
from dlcompiler.ir import Extent
from dlcompiler.measurement import RemoteKernel, Verified, verify
from dlcompiler.measurement.fma_peak import fma_peak_gflops
from dlcompiler.pipeline import build, lower
from dlcompiler.runtime.timing import Paired, format_ratio, format_seconds, time_call
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.te import Tensor, compute, placeholder, var

SIZE = 1024
BRIEF_TIMEOUT = 20
"""Logarithm of the cycles that OpenBLAS's idle threads spin: 0.4 ms at 2.5 GHz."""
ROUNDS = 21


@dataclass(frozen=True)
class BenchmarkResult:
    """The result of a benchmark: a line of text, and the numbers in it."""

    name: str
    text: str
    values: dict[str, float] = field(default_factory=dict)


def run_benchmarks(names: Iterable[str]) -> Iterator[BenchmarkResult]:
    """Run benchmarks by name, one after the other; yield each result at once."""
    for name in names:
        yield BENCHMARKS[name]()


def matmul() -> BenchmarkResult:
    """Measure the quickstart's hand-scheduled product and NumPy's, on one thread each."""
    schedule, args = register_tile(SIZE)
    pair, verified = _beside_numpy(schedule, args, ROUNDS)
    peak = fma_peak_gflops(1)
    own, numpy = pair.b.gflops or 0, pair.a.gflops or 0
    text = (
        f"{format_ratio(pair.ratio)} ±{pair.ratio_spread:.2g} NumPy's @ (target ≥ 0.7): "
        f"{own:.1f} against {numpy:.1f} GFLOP/s, {own / peak:.2f} of the FMA peak; {verified}"
    )
    values = {"ratio": pair.ratio, "gflops": own, "numpy_gflops": numpy, "of_peak": own / peak}
    return BenchmarkResult("matmul 1024³, 1 thread", text, values)


def plain_matmul() -> BenchmarkResult:
    """Measure the same product by its plain loop nest."""
    schedule, args = plain(SIZE)
    pair, _ = _beside_numpy(schedule, args, 3)
    own = pair.b.gflops or 0
    text = f"{format_ratio(pair.ratio)} NumPy's @: {own:.2f} GFLOP/s"
    return BenchmarkResult("  its plain loop nest", text, {"ratio": pair.ratio, "gflops": own})


def _beside_numpy(schedule: Schedule, args: list[Tensor], rounds: int) -> tuple[Paired, Verified]:
    verified = verify(schedule, args)
    kernel = build(schedule, args, name="matmul")
    remote = RemoteKernel.of(kernel, threads=1)
    pair = remote.pair(
        "numpy.matmul",
        limits={"rounds": rounds},
        timeout_s=300,
        flops=kernel.work.flops if kernel.work else None,
    )
    return pair, verified


def lowering() -> BenchmarkResult:
    """Measure lowering the quickstart's last schedule, from a fresh schedule."""
    seconds = []
    for _ in range(ROUNDS):
        schedule, args = register_tile(SIZE)
        start = time.perf_counter()
        lower(schedule, args)
        seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds)
    text = f"{format_seconds(median)} (target ≤ 15 ms)"
    return BenchmarkResult("lowering a fresh schedule", text, {"median_s": median})


def featurising() -> BenchmarkResult:
    """Measure how many candidates a cost model scores in a second."""
    values: dict[str, float] = {}
    texts = []
    for name in SUBJECTS:
        found = time_featurising(name)
        values |= {
            f"{name}: predicted": found.predictions_per_s,
            f"{name}: featurised": found.features_per_s,
            f"{name}: first_s": found.first_s,
        }
        texts.append(
            f"{name} {found.predictions_per_s:,.0f} ({found.features_per_s:,.0f} without the"
            f" model; {found.columns} features, found in {format_seconds(found.first_s)})"
        )
    text = f"candidates a second (target ≥ 100,000): {'; '.join(texts)}"
    return BenchmarkResult("features and predictions", text, values)


def gemm_lowering() -> BenchmarkResult:
    """Measure lowering the six-step GEMM, from a fresh schedule."""
    found = time_lowering(six_step_gemm)
    text = f"{format_seconds(found.whole_s)} (target ≤ 10 ms)"
    return BenchmarkResult("  the six-step GEMM", text, {"median_s": found.whole_s})


def conv2d_lowering() -> BenchmarkResult:
    """Measure lowering a packed convolution of eight stages, from a fresh schedule."""
    found = time_lowering(packed_conv2d)
    text = (
        f"{format_seconds(found.early_s)} before unrolling (target ≤ 50 ms), "
        f"{format_seconds(found.whole_s)} in all"
    )
    values = {"median_s": found.early_s, "with_unrolling_s": found.whole_s}
    return BenchmarkResult("  a packed conv2d of 8 stages", text, values)


def slope() -> BenchmarkResult:
    """Measure how lowering time grows with the number of stages."""
    exponent = lowering_slope()
    text = f"stages^{exponent:.2f} from 10 to 160 stages (target ≤ 1.15)"
    return BenchmarkResult("  its growth", text, {"exponent": exponent})


def step() -> BenchmarkResult:
    """Measure the time of one checked split and of listing all moves of its stage."""
    median = step_cost()
    text = f"{format_seconds(median)} (target ≤ 5 ms)"
    return BenchmarkResult("a split and all moves", text, {"median_s": median})


def compiling() -> BenchmarkResult:
    """Measure building a GEMM kernel: from its schedule to code that can be called."""
    compiled_s, cached_s = time_build(default_gemm)
    text = (
        f"{format_seconds(compiled_s)} (target ≤ 60 ms), "
        f"{format_seconds(cached_s)} where the object cache has it"
    )
    values = {"median_s": compiled_s, "cached_s": cached_s}
    return BenchmarkResult("building a GEMM kernel", text, values)


def call_cost() -> BenchmarkResult:
    """Measure a call with three arrays, all checks included; its code takes a nanosecond."""
    seconds = _call_seconds(1)
    text = f"{format_seconds(seconds)} in all (target ≤ 8 µs)"
    return BenchmarkResult("a call with 3 arrays", text, {"median_s": seconds})


def symbolic_call_cost() -> BenchmarkResult:
    """Measure the same call with a symbolic extent, which is inferred from the shapes."""
    seconds = _call_seconds(var("n"))
    text = f"{format_seconds(seconds)} in all (target ≤ 15 µs)"
    return BenchmarkResult("  with symbolic shapes", text, {"median_s": seconds})


def _call_seconds(extent: Extent) -> float:
    a, b = (placeholder((extent,), name=name) for name in "ab")
    c = compute((extent,), lambda i: a[i] + b[i], name="c")
    kernel = build(create_schedule(c.op), [a, b, c], name="add")
    arrays = [np.ones(1, np.float32) for _ in range(3)]
    return time_call(lambda: kernel(*arrays), min_repeats=50, max_repeats=200).median_s


def dispatching() -> BenchmarkResult:
    """Measure the start of a parallel loop while all threads are idle."""
    found = dispatch()
    text = (
        f"{format_seconds(found.spinning_s)} while helpers spin (target ≤ 10 µs), "
        f"{format_seconds(found.asleep_s)} from sleep (target ≤ 40 µs); until all threads have met "
        f"{format_seconds(found.meeting_spinning_s)} and {format_seconds(found.meeting_asleep_s)}"
    )
    return BenchmarkResult("starting a parallel loop", text, asdict(found))


def alternating() -> BenchmarkResult:
    """Measure parallel products that alternate with NumPy's, relative to each one alone."""
    found, brief = alternation(), alternation(timeout=BRIEF_TIMEOUT)
    text = (
        f"ours takes {found.own:.2f}, np.matmul {found.numpy:.2f} of its time alone (target "
        f"≤ 1.10); with {TIMEOUT}={BRIEF_TIMEOUT} {brief.own:.2f} and {brief.numpy:.2f}"
    )
    values = {"own": found.own, "numpy": found.numpy}
    return BenchmarkResult(
        "  in turn with NumPy",
        text,
        {**values, "own_brief": brief.own, "numpy_brief": brief.numpy},
    )


def simulating() -> BenchmarkResult:
    """Measure the simulator on a tiled product for a GPU: all threads, phases and checks."""
    schedule, args = tiled_gpu_gemm(64)
    kernel = build(schedule, args, target="gpu")
    arrays = [np.ones(tensor.static_shape, np.float32) for tensor in args]
    seconds = time_call(lambda: kernel(*arrays), warmup=0, min_repeats=3, max_repeats=3).median_s
    text = f"{format_seconds(seconds)} (target ≤ 2 s)"
    return BenchmarkResult("simulating a GPU: matmul 64³", text, {"median_s": seconds})


def importing() -> BenchmarkResult:
    """Measure ``import dlcompiler`` in a fresh process."""
    code = "import time; t = time.perf_counter(); import dlcompiler; print(time.perf_counter() - t)"
    seconds = []
    for _ in range(7):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        seconds.append(float(done.stdout))
    median = statistics.median(seconds)
    text = f"{format_seconds(median)} (target ≤ 0.3 s)"
    return BenchmarkResult("import dlcompiler", text, {"median_s": median})


BROWSER_TEST = Path("tests/widgets/test_browser.py")
_CLICK_LINE = re.compile(r"page's clock: median (\d+) ms, (\d+) to (\d+) ms")


def click() -> BenchmarkResult:
    """Measure from a click in the Explorer to the redrawn tree, by the page's own timer.

    The browser and the notebook server are those of the tests, so this needs a checkout.
    """
    name = "a click to the redrawn tree"
    if reason := _no_browser():
        return BenchmarkResult(name, f"not measured: {reason}")
    command = [sys.executable, "-m", "pytest", "-q", "-m", "alone", "-k", "latency"]
    done = subprocess.run(
        [*command, str(BROWSER_TEST)], capture_output=True, text=True, check=False
    )
    found = _CLICK_LINE.search(done.stdout)
    if found is None:
        return BenchmarkResult(name, f"not measured: {done.stdout.strip().splitlines()[-1:]}")
    median, fastest, slowest = map(int, found.groups())
    text = f"{median} ms, {fastest} to {slowest} ms (target ≤ 100 ms)"
    return BenchmarkResult(name, text, {"median_s": median / 1e3, "slowest_s": slowest / 1e3})


def _no_browser() -> str | None:
    if not BROWSER_TEST.is_file():
        return "run it in the folder of a checkout"
    if shutil.which("chromium") is None:
        return "no chromium"
    for module in ("playwright", "jupyterlab", "pytest"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed"
    return None


BENCHMARKS: dict[str, Callable[[], BenchmarkResult]] = {
    "matmul": matmul,
    "plain": plain_matmul,
    "lowering": lowering,
    "lowering gemm": gemm_lowering,
    "lowering conv2d": conv2d_lowering,
    "lowering slope": slope,
    "step": step,
    "compiling": compiling,
    "featurising": featurising,
    "call": call_cost,
    "symbolic call": symbolic_call_cost,
    "dispatch": dispatching,
    "alternation": alternating,
    "simulation": simulating,
    "import": importing,
    "click": click,
}
"""Name -> function that measures."""
