"""AutoTVM's options of building and running candidates, and its measurement results."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from dlcompiler.compat.notes import note
from dlcompiler.compat.targets import Target
from dlcompiler.errors import TuningError

if TYPE_CHECKING:
    from dlcompiler.compat.autotvm.configs import ConfigEntity
    from dlcompiler.compat.autotvm.tasks import Task


class MeasureErrorNo(IntEnum):
    """AutoTVM's error numbers."""

    NO_ERROR = 0
    INSTANTIATION_ERROR = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8


class MeasureInput(NamedTuple):
    """The task, target and config of a measurement."""

    target: Target
    task: Task
    config: ConfigEntity


class MeasureResult(NamedTuple):
    """The result of a measurement."""

    costs: tuple[Any, ...]
    """Seconds per call [s]; of an error, the reason."""
    error_no: int
    """A `MeasureErrorNo`."""
    all_cost: float
    """Time of building and running [s]."""
    timestamp: float
    """Time of the measurement, in seconds since 1970 [s]."""


@dataclass(frozen=True)
class LocalBuilder:
    """Builds candidates in worker processes of this machine."""

    timeout: float = 10.0
    """Limit of a build [s]."""
    n_parallel: int | None = None
    """Has no effect: the number of parallel builds is chosen by a measurement."""
    build_kwargs: object = None
    build_func: object = "default"
    do_fork: bool = False
    runtime: object = None

    def __post_init__(self) -> None:
        if self.build_func != "default":
            raise TuningError(
                "LocalBuilder",
                "only the default build function is available",
                got=str(self.build_func),
            )


@dataclass(frozen=True)
class LocalRunner:
    """Runs candidates in worker processes of this machine, each checked before it is timed."""

    timeout: float = 10.0
    """Limit of a run [s]."""
    number: int = 4
    """Has no effect, like the next three: a candidate is timed until its time is precise
    enough."""
    repeat: int = 3
    min_repeat_ms: int = 0
    cooldown_interval: float = 0.1
    enable_cpu_cache_flush: bool = False
    module_loader: object = None

    def __post_init__(self) -> None:
        if self.enable_cpu_cache_flush:
            note("LocalRunner: caches are not flushed between runs", 4)
        if self.module_loader is not None:
            raise TuningError("LocalRunner", "a module_loader is not part of dlcompiler yet")


class MeasureOption(NamedTuple):
    """The options of building and running, made by ``measure_option``."""

    builder: LocalBuilder
    runner: LocalRunner


def measure_option(builder: Any = "local", runner: Any = "local") -> MeasureOption:
    """Return the options of building and running candidates.

    Parameters
    ----------
    builder : LocalBuilder or "local"
        How they are built.
    runner : LocalRunner or "local"
        How they are run.
    """
    made = LocalBuilder() if builder == "local" else builder
    run = LocalRunner() if runner == "local" else runner
    for value, kind in ((made, LocalBuilder), (run, LocalRunner)):
        if not isinstance(value, kind):
            raise TuningError(
                "measure_option", f"not a {kind.__name__}", got=repr(value), expected='or "local"'
            )
    return MeasureOption(made, run)
