"""Events of a run, which its listeners receive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from dlcompiler.autotune.run.rounds import Round
from dlcompiler.autotune.trial import Trial

if TYPE_CHECKING:
    from dlcompiler.autotune.run.tuning_run import TuningRun

RunState: TypeAlias = Literal["running", "paused", "stopping", "finished", "stopped", "failed"]
EventKind: TypeAlias = Literal["trial", "round", "note", "state", "ended"]


@dataclass(frozen=True, slots=True)
class Event:
    """A change of a run."""

    kind: EventKind
    """``trial``: a trial is done; ``round``: a round began, or all its trials are done; ``note``:
    `TuningRun.note` changed; ``state``: it pauses, goes on or stops; ``ended``: nothing follows."""
    run: TuningRun
    """The run."""
    trial: Trial | None = None
    """The trial that is done."""
    round: Round | None = None
    """The round, as it is now."""


Listener: TypeAlias = Callable[[Event], None]
