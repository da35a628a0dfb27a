"""Show the progress of a tuning run, and of the stages of a command, on standard error.

On a terminal it is a bar; elsewhere there are occasional lines.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from dlcompiler.autotune import Event, TuningRun
from dlcompiler.runtime.timing import format_rate, format_seconds
from dlcompiler.terminal import escaped, show
from dlcompiler.views.tuning.watched import left_text

_LINE_EVERY_S = 10.0
_DRAW_EVERY_S = 0.1
_BEST_OF = 16


def header(run: TuningRun) -> str:
    """Return a text with the size of the space, and the share that the filters exclude."""
    space = run.plan.space
    allowed = space.count
    share = 1 - allowed.value / space.size
    about = "" if allowed.is_exact else "about "
    return f"space {space.size:,} points, {about}{share * 100:.0f} % illegal before measuring"


def status(run: TuningRun) -> str:
    """Return the state of a run in one line: best, rate, recall, failures, time left."""
    done, total = len(run.trials), run.plan.trials
    parts = [f"trial {done}{f'/{total}' if total else ''}"]
    if run.best is not None and run.best.seconds is not None:
        known = " (known before)" if run.best in run.prior else f" at {run.best.index}"
        rate = f" ({format_rate(run.best.gflops or 0)} GFLOP/s)" if run.best.flops else ""
        kind = run.best.provenance.kind
        parts.append(f"best {format_seconds(run.best.seconds)}{rate} {kind}{known}")
    parts.append(f"{format_rate(run.trials_per_second)} trials/s")
    recall = run.recall(_BEST_OF)
    if recall is not None:
        parts.append(f"model top-{_BEST_OF} recall {recall:.2f}")
    failed = {name: count for name, count in run.counts.items() if name != "ok"}
    if failed:
        reasons = ", ".join(f"{count} {name}" for name, count in failed.items())
        parts.append(f"{sum(failed.values())} failed ({reasons})")
    if run.is_running:
        parts.append(left_text(run.remaining_s))
    return " · ".join(parts)


def _new_bar(total: int | None) -> Any:
    tqdm = importlib.import_module("tqdm").tqdm
    return tqdm(
        total=total, file=sys.stderr, bar_format="{bar:12} {desc}", leave=False, dynamic_ncols=True
    )


@contextmanager
def stage(text: str) -> Iterator[Callable[[int, int], None]]:
    """Show a stage of a command while it lasts.

    Parameters
    ----------
    text : str
        What happens in it.

    Yields
    ------
    callable
        Shows how far it is, from the number of parts that are done and the number of all.
    """
    if not sys.stderr.isatty():
        show(text, file=sys.stderr)
        yield lambda done, total: None
        return
    bar = _new_bar(1)
    bar.set_description_str(escaped(text))

    def update(done: int, total: int) -> None:
        bar.total, bar.n = total, done
        bar.set_description_str(escaped(f"{text}: {done} of {total}"))

    try:
        yield update
    finally:
        bar.close()


class Progress:
    """Shows a run on standard error until it has ended.

    Parameters
    ----------
    run : TuningRun
        What is shown; it may have begun.
    """

    def __init__(self, run: TuningRun) -> None:
        self._run = run
        self._notes: set[str] = set()
        self._said_at = time.perf_counter()
        self._bar: Any = None
        self._say(header(run))
        if sys.stderr.isatty():
            self._bar = _new_bar(run.plan.trials)
        run.listeners.append(self._on_event)
        self._show_notes()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._on_event in self._run.listeners:
            self._run.listeners.remove(self._on_event)
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        self._show_notes()
        self._say(f"{self._run.state}: {status(self._run)}")

    def _on_event(self, event: Event) -> None:
        if event.kind == "note":
            self._show_notes()
        elif event.kind == "trial":
            self._show_trials()

    def _show_trials(self) -> None:
        waits_s = _LINE_EVERY_S if self._bar is None else _DRAW_EVERY_S
        if time.perf_counter() - self._said_at < waits_s:
            return
        if self._bar is None:
            self._say(status(self._run))
        else:
            self._said_at = time.perf_counter()
            self._bar.n = len(self._run.trials)
            self._bar.set_description_str(status(self._run))

    def _show_notes(self) -> None:
        for note in self._run.notes:
            if note not in self._notes:
                self._notes.add(note)
                self._say(note)

    def _say(self, text: str) -> None:
        self._said_at = time.perf_counter()
        if self._bar is None:
            show(*text.split("\n"), file=sys.stderr)
        else:
            self._bar.write(escaped(text, keep="\n"), file=sys.stderr)
