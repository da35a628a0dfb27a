"""Tune ResNet-18's convolutions on simulated cycles of VTA: ``accelerator-tuning``.

Each of C2 to C12 gets a number of trials. The best config is compared with the schedules that are
written by hand: those of the suite ``accelerator``. All cycles are simulated, so that they are the
same on any machine. Records in a file are kept, and only the trials that they lack are run.

Two bounds stand beside the cycles. *Products*: the GEMM core takes one product of blocks a cycle,
and the memory port must load each element that is needed once. *Engine*: GEMM and ALU share an
engine. Each block of results needs a reset, since accumulators keep the values of the last tile,
and an ALU operation for each of shift, lower and upper limit, which no other engine can do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dlcompiler.autotune import Record, RecordStore, best, target_key, tune
from dlcompiler.bench.accelerator import LAYERS, measure, workload_of
from dlcompiler.errors import UserError
from dlcompiler.ops.packed.extents import Extents, extents_of
from dlcompiler.ops.packed.tail import tail_of
from dlcompiler.space import Workload
from dlcompiler.target import Target
from dlcompiler.target.accelerators.vta import VtaConfig, vta

SCHEMA_VERSION = 1
TRIALS = 200
"""Trials of each layer; [1]."""


@dataclass(frozen=True)
class Tuned:
    """The best config of a layer; all cycles are simulated."""

    layer: str
    config: Mapping[str, Any]
    trials: int
    outcomes: Mapping[str, int]
    products: int
    """Bound of the GEMM core, or of the loads at the width of the port; [clock]."""
    engine: int
    """Bound of the engine that computes: products, resets and operations of the ALU; [clock]."""
    by_hand: int
    """Cycles of the best schedule of the suite ``accelerator``; [clock]."""
    cycles: int
    """Cycles of the best config; [clock]."""

    @property
    def ratio(self) -> float:
        """How many times as fast as the best schedule by hand."""
        return self.by_hand / self.cycles

    def __str__(self) -> str:
        return (
            f"{self.layer:<4} {self.cycles:>9,} cycles after {self.trials} trials, the best by hand"
            f" {self.by_hand:,}; products alone {self.products / self.cycles:6.1%},"
            f" all of the engine {self.engine / self.cycles:6.1%} of them"
        )


def run_suite(
    say: Callable[[str], None], layers: Sequence[str] = (), *, trials: int = TRIALS,
    profile: str = "B", db: str | None = None, tuner: str = "xgb",
) -> dict[str, Any]:  # fmt: skip
    """Tune the layers; return the document.

    Parameters
    ----------
    say
        Called with each row as soon as it is there.
    layers
        Names of `LAYERS`; all by default.
    trials
        Trials of each layer, with those that `db` has; [1].
    profile
        Rules of the timed simulator: ``"A"`` or ``"B"``.
    db
        File with records of trials, to go on after an interruption; in memory by default.
    tuner
        A key of `dlcompiler.autotune.tuners.TUNERS`.

    Raises
    ------
    UserError
        There is no such layer.
    """
    if unknown := [name for name in layers if name not in LAYERS]:
        raise UserError(
            "bench --suite accelerator-tuning", "no such layer", got=", ".join(unknown),
            expected=", ".join(LAYERS),
        )  # fmt: skip
    target = vta("vta-pynq", VtaConfig(profile=profile)).target
    rows = []
    with RecordStore(":memory:" if db is None else db) as store:
        for name in layers or LAYERS:
            rows.append(tuned(name, target, store, trials, tuner))
            say(str(rows[-1]))
    means = {key: _mean(map(share, rows)) for key, share in _SHARES.items()}
    say(", ".join(f"{key} {mean:.3f}" for key, mean in means.items()) + " (geometric means)")
    return {
        "version": SCHEMA_VERSION, "provenance": f"simulated on vta-pynq, profile {profile}",
        "tuned": [asdict(row) for row in rows], "geometric means": means, "failed": {},
    }  # fmt: skip


_SHARES: Mapping[str, Callable[[Tuned], float]] = {
    "over by hand": lambda row: row.ratio,
    "of the products": lambda row: row.products / row.cycles,
    "of the engine": lambda row: row.engine / row.cycles,
    "bound of the products": lambda row: row.products / row.engine,
}


def _mean(shares: Any) -> float:
    return float(np.exp(np.mean([np.log(share) for share in shares])))


def tuned(
    layer: str, target: Target, store: RecordStore, trials: int = TRIALS, tuner: str = "xgb"
) -> Tuned:
    """Run the trials that the records of a layer lack, and return the best config."""
    workload = workload_of(layer)
    hand = measure(layer, target)
    for _ in range(2):  # the first may go on with a run that was killed, whose trials it counts
        missing = trials - len(_records(store, workload, target))
        if missing <= 0:
            break
        tune(workload, target, trials=missing, db=store, tuner=tuner).wait_or_stop()
    found = best(workload, target, store)
    assert found is not None
    records = _records(store, workload, target)
    e, bus = extents_of(workload), target.accelerator.port.bytes_per_cycle
    return Tuned(
        layer, dict(found.config.values), len(records),
        dict(Counter(str(record.result.outcome) for record in records)),
        max(e.updates, -(-_loaded_bytes(e) // bus)), e.updates + _operations(workload),
        min(hand.cycles, hand.cycles_without, hand.cycles_threads),
        round(found.result.seconds * target.accelerator.clock_hz),
    )  # fmt: skip


def _records(store: RecordStore, workload: Workload, target: Target) -> Sequence[Record]:
    return store.records(workload, target_key(target, target.cores))


def _operations(workload: Workload) -> int:
    """Return the cycles of the engine that computes besides products, one an update; [clock]."""
    e, tail = extents_of(workload), tail_of(workload)
    rows, columns = e.out
    each = 1 + bool(tail.shift) + 2 * (tail.bias + tail.residual) + 2
    return e.images * e.filters * rows * columns * each


def _loaded_bytes(e: Extents) -> int:
    """Return the bytes of the images and weights that are needed, each once [byte]."""
    sides = zip(e.out, e.kernel, (e.height, e.width), strict=True)
    rows, columns = (min(n * k if k < e.stride else size, size) for n, k, size in sides)
    b = e.blocks
    images = e.images * e.channels * rows * columns * b.batch * b.inputs
    return images + e.filters * e.depth * e.kernel[0] * e.kernel[1] * b.outputs * b.inputs
