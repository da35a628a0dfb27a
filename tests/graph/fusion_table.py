"""Print what each rule of fusion changes, as the table of ``docs/GRAPHS.md``.

``python -m tests.graph.fusion_table``
"""

from __future__ import annotations

from collections.abc import Callable

from dlcompiler.graph import builders, op, optimize, var
from dlcompiler.graph.ir import Expr, Function, Module, Tuple, post_order
from dlcompiler.graph.passes import FusionOptions, PassContext, fuse_ops
from dlcompiler.graph.passes.fusion import moved_bytes

RULES = {
    "published rule": FusionOptions(),
    "`rows`": FusionOptions(rows=True),
    "`recompute`": FusionOptions(recompute=True),
    "`siblings`": FusionOptions(siblings=True),
    "all": FusionOptions(rows=True, recompute=True, siblings=True),
}


def _softmax() -> Module:
    x = var("x", (1024, 256))
    powers = op.exp(op.subtract(x, op.max(x, axis=-1, keepdims=True)))
    return Module.from_expr(op.divide(powers, op.sum(powers, axis=-1, keepdims=True)))


def _layer_norm() -> Module:
    x, gamma, beta = var("x", (1024, 256)), var("gamma", (256,)), var("beta", (256,))
    centred = op.subtract(x, op.mean(x, axis=-1, keepdims=True))
    variance = op.mean(op.multiply(centred, centred), axis=-1, keepdims=True)
    scaled = op.multiply(centred, op.rsqrt(op.add(variance, 1e-5)))
    return Module.from_expr(op.add(op.multiply(scaled, gamma), beta))


def _three_results() -> Module:
    x = var("x", (1024, 256))
    shared = op.nn.relu(x)
    results: tuple[Expr, ...] = (op.sqrt(shared), op.tanh(shared), op.sum(shared, axis=1))
    return Module.from_expr(Function((x,), Tuple(results)))


MODELS: dict[str, Callable[[], Module]] = {
    "ResNet-18": lambda: builders.resnet(18, image=32).bound,
    "ResNet-50": lambda: builders.resnet(50, image=32).bound,
    "MobileNet v1": lambda: builders.mobilenet(1, image=32).bound,
    "MobileNet v2": lambda: builders.mobilenet(2, image=32).bound,
    "SqueezeNet": lambda: builders.squeezenet(image=64).bound,
    "Inception block": lambda: builders.inception().bound,
    "DCGAN": lambda: builders.dcgan().bound,
    "DQN": lambda: builders.dqn().bound,
    "LSTM": lambda: builders.lstm().bound,
    "transformer": lambda: builders.transformer().bound,
    "softmax, written out": _softmax,
    "layer norm, written out": _layer_norm,
    "three results of a relu": _three_results,
}


def table() -> str:
    """Return the table as Markdown."""
    lines = [f"| Model | {' | '.join(RULES)} |", f"|---|{'---|' * len(RULES)}"]
    for name, build in MODELS.items():
        module = optimize(build(), context=PassContext(3, disabled_pass=("fuse_ops",)))
        cells = [_cell(fuse_ops(module, options=options)) for options in RULES.values()]
        # A rule that changes nothing has no number.
        shown = [cells[0], *(cell if cell != cells[0] else "" for cell in cells[1:])]
        lines.append(f"| {' | '.join([name, *shown])} |")
    return "\n".join(lines) + "\n"


def _cell(module: Module) -> str:
    kernels = [n for n in post_order(module.main.body) if isinstance(n, Function)]
    return f"{len(kernels)}, {moved_bytes(module) / 1e6:.2f} MB"


if __name__ == "__main__":
    print(table(), end="")
