"""Search for the fastest config of a template, and keep what was measured.

`tune` starts a `TuningRun`. In each round, a tuner proposes points, and a pool builds, checks and
times them in worker processes. Each `Trial` is stored as a `Record` in a `RecordStore`, and the
tuner observes its rate. `apply_best` returns the schedule of the fastest record::

    >>> from dlcompiler import autotune, ops
    >>> work = ops.operator("matmul").workload(m=512, n=512, k=512)
    >>> run = autotune.tune(work, trials=200, db="gemm.sqlite")                # doctest: +SKIP
    >>> run.pause(), run.resume(), run.stop()                                  # doctest: +SKIP
    >>> run.best, run.rounds[-1].correlation, run.clock.own_share              # doctest: +SKIP
    >>> schedule, args = autotune.apply_best(work, "cpu", "gemm.sqlite")       # doctest: +SKIP

"""

from dlcompiler.autotune.candidate import Candidate, StoredCandidate, TemplateCandidate
from dlcompiler.autotune.pools.local import LocalPool
from dlcompiler.autotune.pools.measure import Measurer
from dlcompiler.autotune.pools.measure_pool import Compared, Device, MeasurePool
from dlcompiler.autotune.pools.serial import SerialPool
from dlcompiler.autotune.records.autotvm_records import export_autotvm, import_autotvm
from dlcompiler.autotune.records.best import Choice, apply_best, best, best_choice
from dlcompiler.autotune.records.jsonl import (
    BadLine,
    Imported,
    export_records,
    import_records,
    read_records,
    write_records,
)
from dlcompiler.autotune.records.record import Record, target_key, write_line
from dlcompiler.autotune.records.store import RecordStore
from dlcompiler.autotune.run.clock import Phases
from dlcompiler.autotune.run.events import Event
from dlcompiler.autotune.run.rounds import Round, rank_correlation, recall
from dlcompiler.autotune.run.tune import tune
from dlcompiler.autotune.run.tuning_run import TuningRun
from dlcompiler.autotune.templates import declared_schedule, template
from dlcompiler.autotune.trial import OUTCOMES, Result, Trial

__all__ = [
    "OUTCOMES",
    "BadLine",
    "Candidate",
    "Choice",
    "Compared",
    "Device",
    "Event",
    "Imported",
    "LocalPool",
    "MeasurePool",
    "Measurer",
    "Phases",
    "Record",
    "RecordStore",
    "Result",
    "Round",
    "SerialPool",
    "StoredCandidate",
    "TemplateCandidate",
    "Trial",
    "TuningRun",
    "apply_best",
    "best",
    "best_choice",
    "declared_schedule",
    "export_autotvm",
    "export_records",
    "import_autotvm",
    "import_records",
    "rank_correlation",
    "read_records",
    "recall",
    "target_key",
    "template",
    "tune",
    "write_line",
    "write_records",
]
