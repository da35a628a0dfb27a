"""Measure compiled models: building, fusion on and off, memory, and the entry: ``--suite graph``.

Each model is built with and without fusion by the same passes, and the results of both are compared
with those of the interpreter. Then both are timed in alternation. The cases of fusion are those of
the TVM paper, with the statistics of batch norms as factors and summands, which stay.

**Source:** T. Chen and others, "TVM: An automated end-to-end optimizing compiler for deep
learning", OSDI 2018, figure 4.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dlcompiler import dtypes, graph
from dlcompiler.errors import VerificationError
from dlcompiler.graph import builders, op
from dlcompiler.graph.builders import Model
from dlcompiler.graph.execution.kept_kernels import KEPT
from dlcompiler.graph.ir import Expr, Module, Var
from dlcompiler.graph.passes import PassContext
from dlcompiler.runtime import object_cache
from dlcompiler.runtime.object_cache import ObjectCache
from dlcompiler.runtime.timing import alternate, format_ratio, format_seconds

SCHEMA_VERSION = 1
LEVEL = 3
CASE_LEVEL = 2
"""At this level a batch norm keeps its factors; beyond, they become part of the weights."""
CHAIN = 200
"""Kernels of the model whose entry is measured; [1]."""
TOLERANCE = 1e-3
"""Of results, relative to the largest: convolutions by minimal filtering round more."""
WARM_S = 0.005
"""Calls before each sample, so that both cores are awake [s]."""
Say: TypeAlias = Callable[[str], None]
Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Row:
    """A model, compiled with and without fusion."""

    model: str
    kernels: int
    """Kernels that are called, with fusion; [1]."""
    unfused_kernels: int
    passes_s: float
    """Time of the passes [s]."""
    cold_s: float
    """Time to build it, passes included, without any object in the cache [s]."""
    warm_s: float
    """The same with all objects in the cache [s]."""
    seconds: float
    """Median time of a call [s]."""
    unfused_s: float
    """The same without fusion [s]."""
    arena: int
    """Size of the arena [byte]."""
    bound: int
    """Lower bound of the arena [byte]."""
    classic: int
    """By the pool of Relay [byte]."""
    naive: int
    """Without any reuse [byte]."""
    unfused_arena: int
    """Size of the arena without fusion [byte]."""

    def __str__(self) -> str:
        return (
            f"{self.model:<12} {self.kernels:>3} kernels (unfused {self.unfused_kernels}), passes "
            f"{format_seconds(self.passes_s)}, built in {format_seconds(self.cold_s)} "
            f"({format_seconds(self.warm_s)} from the cache), a call takes "
            f"{format_seconds(self.seconds)}, unfused {format_seconds(self.unfused_s)} "
            f"({format_ratio(self.unfused_s / self.seconds)}); arena {self.arena:,} bytes (bound "
            f"{self.bound:,}, classic {self.classic:,}, unfused {self.unfused_arena:,})"
        )


def run_suite(
    say: Say, works: Mapping[str, Callable[[], Model]] | None = None, *, budget_s: float = 2.0
) -> dict[str, Any]:
    """Measure models; return the document.

    A model that fails is listed under ``failed`` with its reason; the others are measured.

    Parameters
    ----------
    say
        Called with each row as soon as it is measured.
    works
        Name -> what makes the model; by default `MODELS` and `CASES`.
    budget_s
        Time for the calls of each model [s].
    """
    found: dict[str, list[dict[str, Any]]] = {"models": [], "cases": []}
    failed = {}
    chosen = {**MODELS, **CASES} if works is None else works
    for name, make in chosen.items():
        kind = "cases" if name in CASES else "models"
        try:
            row = measure(name, make(), CASE_LEVEL if name in CASES else LEVEL, budget_s)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
            say(f"{name}: {failed[name]}")
            continue
        say(str(row))
        found[kind].append(asdict(row))
    entry_s = entry_seconds(budget_s)
    say(f"the entry: {entry_s * 1e9:.0f} ns a kernel, with the kernel, which adds two numbers")
    document: dict[str, Any] = {
        "version": SCHEMA_VERSION, **found, "entry_s": entry_s, "failed": failed
    }  # fmt: skip
    if found["cases"]:
        ratios = [row["unfused_s"] / row["seconds"] for row in found["cases"]]
        document["cases_mean"] = math.exp(sum(map(math.log, ratios)) / len(ratios))
        mean = format_ratio(document["cases_mean"])
        say(f"fusion of the paper's four cases: geometric mean {mean}")
    return document


def measure(name: str, model: Model, level: int, budget_s: float) -> Row:
    """Build a model with and without fusion, compare the results, and time both.

    Raises
    ------
    VerificationError
        The results differ from those of the interpreter.
    """
    module = model.bound
    begin = time.perf_counter()
    graph.optimize(module, level)
    passes_s = time.perf_counter() - begin
    with own_cache():
        fused, cold_s = _built(module, PassContext(level))
        fused, warm_s = _built(module, PassContext(level))
        plain, _ = _built(module, PassContext(level, disabled_pass=("fuse_ops",)))
    inputs = inputs_of(fused)
    _verify(name, module, {"fused": fused, "unfused": plain}, inputs)
    calls = [partial(model.run, *inputs, *_outputs(model)) for model in (fused, plain)]
    times = alternate(calls, budget_s=budget_s, warm_s=WARM_S)
    plan = fused.plan
    return Row(
        name, len(fused.steps), len(plain.steps), passes_s, cold_s, warm_s,
        times[0].median_s, times[1].median_s, plan.bytes, plan.bound, plan.classic, plan.naive,
        plain.plan.bytes,
    )  # fmt: skip


def _outputs(model: graph.CompiledModel) -> list[Array]:
    return [np.empty(p.static_shape, p.dtype) for p in model.params if p.is_output]


def entry_seconds(budget_s: float) -> float:
    """Return the time that each of many tiny kernels adds to a call [s]."""
    found = []
    for count in (1, CHAIN):
        x: Expr = Var("x", graph.TensorType((1,)))
        for _ in range(count):
            x = op.add(x, op.copy(x))
        module = Module.from_expr(x)
        model = graph.build(module, context=PassContext(0, disabled_pass=("fuse_ops",)))
        out = np.empty(1, np.float32)
        (timing,) = alternate([partial(model.run, np.ones(1, np.float32), out)], budget_s=budget_s)
        found.append((timing.median_s, len(model.steps)))
    (few_s, few), (many_s, many) = found
    return (many_s - few_s) / (many - few)


@contextmanager
def own_cache() -> Iterator[None]:
    """Use a cache of objects that is empty at first."""
    before = object_cache.current()
    with tempfile.TemporaryDirectory() as folder:
        object_cache.use(ObjectCache(Path(folder)))
        try:
            yield
        finally:
            object_cache.use(before)


def _built(module: Module, context: PassContext) -> tuple[graph.CompiledModel, float]:
    KEPT.clear()  # the object cache is measured, not what this process has built
    begin = time.perf_counter()
    model = graph.build(module, context=context)
    seconds = time.perf_counter() - begin
    assert isinstance(model, graph.CompiledModel)
    return model, seconds


def inputs_of(model: graph.CompiledModel) -> list[Array]:
    """Return random arrays for the parameters of a model."""
    random = np.random.default_rng(0)
    arrays = []
    for param in model.params:
        if not param.is_output:
            shape, is_whole = param.static_shape, dtypes.is_int(param.dtype)
            values = random.integers(0, 9, shape) if is_whole else random.uniform(-1, 1, shape)
            arrays.append(values.astype(param.dtype))
    return arrays


def _verify(
    name: str, module: Module, models: Mapping[str, graph.CompiledModel], inputs: list[Array]
) -> None:
    expected = flat(graph.evaluate(module, *inputs))
    for kind, model in models.items():
        for a, b in zip(flat(model(*inputs)), expected, strict=True):
            size = max(float(np.abs(b).max(initial=0)), 1e-6)
            if not np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE * size):
                raise VerificationError(f"run {name}, {kind}", "the result is wrong")


def flat(value: Any) -> list[Array]:
    """Return the arrays of a result from left to right."""
    return [a for part in value for a in flat(part)] if isinstance(value, tuple) else [value]


# -- works ----------------------------------------------------------------------------------------


def _model(result: Expr, inputs: tuple[Var, ...]) -> Model:
    return builders.model_of(result, inputs, 0)


def _normalised(data: Expr) -> Expr:
    """Return what a batch norm and an activation make of a result."""
    channels = [Var(f"bn_{part}") for part in ("gamma", "beta", "mean", "var")]
    return op.nn.relu(op.nn.batch_norm(data, *channels)[0])


def conv_bn_relu() -> Model:
    """Return a convolution of 128 × 28 × 28 to 256 channels, 1 × 1, with batch norm and ReLU."""
    x = graph.var("data", (1, 128, 28, 28))
    return _model(
        _normalised(op.nn.conv2d(x, Var("conv_weight"), channels=256, kernel_size=1)), (x,)
    )


def depthwise_bn_relu() -> Model:
    """Return a depthwise convolution of 512 × 14 × 14, 3 × 3, with batch norm and ReLU."""
    x = graph.var("data", (1, 512, 14, 14))
    made = op.nn.conv2d(x, Var("conv_weight"), channels=512, kernel_size=3, padding=1, groups=512)
    return _model(_normalised(made), (x,))


def rnn_cell(width: int = 128) -> Model:
    """Return a cell of a recurrent network."""
    x, h = graph.var("data", (1, width)), graph.var("hidden", (1, width))
    both = op.add(_layer(x, "input", width), _layer(h, "hidden", width))
    return _model(op.tanh(both), (x, h))


def lstm_cell(width: int = 128) -> Model:
    """Return a cell of long short-term memory."""
    x, h, c = (graph.var(name, (1, width)) for name in ("data", "hidden", "cell"))
    gates = op.add(_layer(x, "input", 4 * width), _layer(h, "hidden", 4 * width))
    parts = op.split(gates, indices_or_sections=4, axis=1)
    take, forget, put = (op.sigmoid(parts[n]) for n in (0, 1, 3))
    kept = op.add(op.multiply(forget, c), op.multiply(take, op.tanh(parts[2])))
    return _model(graph.Tuple((op.multiply(put, op.tanh(kept)), kept)), (x, h, c))


def _layer(x: Expr, name: str, units: int) -> Expr:
    product = op.nn.dense(x, Var(f"{name}_weight"), units=units)
    return op.nn.bias_add(product, Var(f"{name}_bias"))


CASES: Mapping[str, Callable[[], Model]] = {
    "conv+bn+relu": conv_bn_relu,
    "depthwise+bn+relu": depthwise_bn_relu,
    "rnn cell": rnn_cell,
    "lstm cell": lstm_cell,
}
"""The four cases of the paper."""
MODELS: Mapping[str, Callable[[], Model]] = {
    "resnet18": partial(builders.resnet, 18),
    "resnet50": partial(builders.resnet, 50),
    "mobilenet1": partial(builders.mobilenet, 1),
    "mobilenet2": partial(builders.mobilenet, 2),
    "squeezenet": builders.squeezenet,
    "vgg16": partial(builders.vgg, 16),
    "inception": builders.inception,
    "lenet": builders.lenet,
    "dqn": builders.dqn,
    "dcgan": builders.dcgan,
    "mlp": builders.mlp,
    "lstm": builders.lstm,
    "transformer": builders.transformer,
}
"""The builders' models."""
