"""The suites of the benchmark: tables of works with their goals, as data.

**Source:** convolutions C1 … C12 and D1 … D9: T. Chen and others, "TVM: An automated end-to-end
optimizing compiler for deep learning", OSDI 2018, table 2 (SAME padding, batch 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dlcompiler.bench.goals import Goal, MeanRatio, PeakFraction, Speedup, WorstRatio
from dlcompiler.bench.heldout import FAMILIES, heldout_works
from dlcompiler.bench.works import Work, parse_work
from dlcompiler.errors import UserError

SEED, COUNT = 20260727, 40


@dataclass(frozen=True)
class Table:
    """Works that are measured and judged together."""

    name: str
    """Name on the command line."""
    title: str
    works: Mapping[str, Work]
    """Works by their labels."""
    goals: tuple[Goal, ...]
    """Goals of the table."""
    on_all_cores: bool = False
    """Whether our kernels and all peers use all cores; else one thread."""
    is_tuned: bool = True
    """Whether configs that ship are used."""


def _works(texts: Iterable[str], labels: Iterable[str] | None = None) -> dict[str, Work]:
    texts = tuple(texts)
    chosen = tuple(labels or (text.partition(":")[2] for text in texts))
    return {label: parse_work(text) for label, text in zip(chosen, texts, strict=True)}


_SQUARES = (256, 512, 1024, 2048)
_GEMM = _works(
    [
        *(f"gemm:{n}x{n}x{n}" for n in _SQUARES),
        "gemm:1x1024x1024",
        "gemm:32x1024x1024",
        "gemm:1024x32x1024",
    ],
)

# H = W, input channels, output channels, kernel, stride.
_C = (
    (224, 3, 64, 7, 2),
    (56, 64, 64, 3, 1),
    (56, 64, 64, 1, 1),
    (56, 64, 128, 3, 2),
    (56, 64, 128, 1, 2),
    (28, 128, 128, 3, 1),
    (28, 128, 256, 3, 2),
    (28, 128, 256, 1, 2),
    (14, 256, 256, 3, 1),
    (14, 256, 512, 3, 2),
    (14, 256, 512, 1, 2),
    (7, 512, 512, 3, 1),
)
_CONV2D = _works(
    [f"conv2d:1x{i}x{h}x{h},{o},{k},{s},{k // 2}" for h, i, o, k, s in _C],
    [f"C{n}" for n in range(1, len(_C) + 1)],
)
_SMALL_KERNELS = ("C2", "C6", "C9", "C12")

# H = W, channels, stride.
_D = (
    (112, 32, 1),
    (112, 64, 2),
    (56, 128, 1),
    (56, 128, 2),
    (28, 256, 1),
    (28, 256, 2),
    (14, 512, 1),
    (14, 512, 2),
    (7, 1024, 1),
)
_DEPTHWISE = _works(
    [f"depthwise:1x{c}x{h}x{h},3,{s},1" for h, c, s in _D],
    [f"D{n}" for n in range(1, len(_D) + 1)],
)

_FUSED = _works(
    [
        "conv2d:1x64x56x56,64,3,1,1+bias+relu",
        "conv2d:1x64x56x56,64,3,1,1+batch_norm+residual+relu",
        "dense:128x3072x768+bias+gelu",
        "depthwise:1x128x56x56,3,1,1+batch_norm+relu6",
        "softmax:64x1000",
        "softmax:8x4096",
        "layer_norm:512x768",
    ],
    [
        "conv + bias + relu",
        "conv + batch norm + residual + relu",
        "dense + bias + gelu",
        "depthwise + batch norm + relu6",
        "softmax 64×1000",
        "softmax 8×4096",
        "layer norm 512×768",
    ],
)

_LENGTH = 1 << 24  # 64 MiB of float32
_MEMORY = _works(
    [
        *(f"elementwise:{name}:{_LENGTH}" for name in ("copy", "scale", "relu", "add", "multiply")),
        *(f"reduction:{name}:4096x4096" for name in ("sum", "max", "mean")),
        f"reduction:sum:1x{_LENGTH}",
        f"reduction:max:1x{_LENGTH}",
    ],
)

TABLES: tuple[Table, ...] = (
    Table(
        "gemm",
        "Matrix products",
        _GEMM,
        (MeanRatio(1.0), WorstRatio(0.95), PeakFraction(0.9, "1024x1024x1024")),
    ),
    Table(
        "conv2d",
        "Convolutions",
        _CONV2D,
        (MeanRatio(1.1), WorstRatio(0.85), MeanRatio(1.3, _SMALL_KERNELS)),
    ),
    Table("depthwise", "Depthwise convolutions", _DEPTHWISE, (MeanRatio(1.5),)),
    Table("fused", "Fused operators and rows", _FUSED, (MeanRatio(1.5), WorstRatio(1.0))),
    Table(
        "cores",
        "Matrix products and convolutions on all cores",
        {**_GEMM, **_CONV2D},
        (MeanRatio(1.0), Speedup(0.85)),
        on_all_cores=True,
    ),
    Table(
        "memory",
        "Elementwise functions and reductions over 64 MiB",
        _MEMORY,
        (WorstRatio(0.95, ("memcpy", "numpy", "stream")),),
    ),
)
_HELDOUT = tuple(f"heldout-{family}" for family in FAMILIES)
SUITES = ("paper", "heldout", *(table.name for table in TABLES), *_HELDOUT)
"""Names on the command line: ``paper`` is all tables."""


def tables_of(suite: str, *, seed: int = SEED, count: int = COUNT) -> tuple[Table, ...]:
    """Return the tables of a suite.

    Parameters
    ----------
    suite : str
        One of `SUITES`.
    seed, count : int
        Of the heldout shapes: the seed they are drawn from, and the number in each family.

    Raises
    ------
    UserError
        If there is no such suite, or the count is not positive.
    """
    if suite not in SUITES or count < 1:
        raise UserError(
            "bench", "no such suite", got=f"{suite!r}, {count} of each family",
            expected=", ".join(SUITES) + "; a count of 1 or more",
        )  # fmt: skip
    heldout = tuple(
        Table(
            f"heldout-{family}",
            f"Heldout shapes: {family}, seed {seed}",
            {work.text.partition(":")[2]: work for work in heldout_works(family, seed, count)},
            (MeanRatio(0.7),),
            is_tuned=False,
        )
        for family in FAMILIES
        if suite in ("paper", "heldout", f"heldout-{family}")
    )
    return (*(t for t in TABLES if suite in ("paper", t.name)), *heldout)
