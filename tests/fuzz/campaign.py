"""Run thousands of random cases, one for each seed, starting where the last run stopped.

A folder holds ``state.json`` (the next seed, and what all runs counted), ``log.jsonl`` (a line for
each run), ``failures.jsonl``, and ``current`` (the case being tried: it tells which one ended the
process).
"""

from __future__ import annotations

import collections
import contextlib
import fcntl
import json
import os
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.fuzz.checks import Case, Wrong, case_of, check
from tests.fuzz.expressions import random_expression
from tests.fuzz.shrinking import shrink
from tests.fuzz.threads import ThreadWalk
from tests.fuzz.walks import Walk

FIRST_SEED = 2000  # the test suite tries the seeds before
SAVE_EVERY_S = 5


@dataclass
class State:
    """The next seed of a campaign, and the failures that it has found."""

    next_seed: int = FIRST_SEED
    cases: int = 0
    mismatches: int = 0
    internal_errors: int = 0
    runs: int = 0
    primitives: dict[str, int] = field(default_factory=dict)
    reached: dict[str, int] = field(default_factory=dict)
    """Cases by how far they came: see `checks.check`."""

    def __str__(self) -> str:
        return (
            f"{self.cases} cases so far (seeds {FIRST_SEED} to {self.next_seed - 1}), "
            f"{self.mismatches} mismatches, {self.internal_errors} internal errors"
        )


def run(
    folder: Path,
    *,
    seconds: float,
    most: int,
    template: str | None = None,
    walk: type[Walk] = Walk,
) -> int:
    """Try cases until the time or their number is over; return how many failed.

    Ctrl-C ends a run as its time does: the case that it interrupted is tried again by the next one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        state, first = _read(folder), time.monotonic()
        state.runs += 1
        _count_crash(folder, state)
        start, failed, shown, saved = state.next_seed, 0, first, first
        with contextlib.suppress(KeyboardInterrupt), (folder / "current").open("w") as current:
            while time.monotonic() - first < seconds and state.next_seed - start < most:
                current.seek(0)
                current.write(f"{state.next_seed}\n")
                current.flush()
                failed += _one(folder, state, template, walk)
                now = time.monotonic()
                if now - saved > SAVE_EVERY_S:
                    saved = now
                    _write(folder, state)
                if now - shown > 60:
                    shown = now
                    print(f"{time.strftime('%H:%M:%S')} {state}", flush=True)
        (folder / "current").unlink()
        _write(folder, state)
        elapsed = time.monotonic() - first
        line = {"seeds": [start, state.next_seed], "seconds": round(elapsed), "failed": failed}
        _append(folder / "log.jsonl", {**line, "ended": time.strftime("%F %T"), "all": str(state)})
    rate = (state.next_seed - start) / max(elapsed, 1e-9)
    print(f"this run: seeds {start} to {state.next_seed - 1}, {failed} failed, {rate:.1f} cases/s")
    print(state, flush=True)
    return failed


def _one(folder: Path, state: State, template: str | None, walk: type[Walk]) -> int:
    """Try the next case and count it."""
    seed = state.next_seed
    result = attempt(seed, template, walk=walk)
    state.next_seed, state.cases = seed + 1, state.cases + 1
    state.primitives = _counted(state.primitives, result.primitives)
    state.reached = _counted(state.reached, [result.reached])
    if not result.kind:
        return 0
    state.mismatches += result.kind == "mismatch"
    state.internal_errors += result.kind == "internal error"
    _append(folder / "failures.jsonl", {"seed": seed, "kind": result.kind, "text": result.text})
    _write(folder, state)
    print(result.text, flush=True)
    return 1


def _counted(counts: dict[str, int], more: list[str]) -> dict[str, int]:
    return dict(collections.Counter(counts) + collections.Counter(more))


@dataclass(frozen=True)
class Attempt:
    """The outcome of a case."""

    kind: str = ""
    """``mismatch`` or ``internal error``; empty if all is well."""
    text: str = ""
    """What to read of a failure."""
    primitives: list[str] = field(default_factory=list)
    reached: str = "failed"
    """What `checks.check` returned."""


def attempt(
    seed: int,
    template: str | None = None,
    given: Case | None = None,
    *,
    walk: type[Walk] = Walk,
) -> Attempt:
    """Try a case; if it fails, find a smaller case that fails."""
    try:
        case = given or case_of(seed, template, walk=walk)
    except Exception:
        text = f"== seed {seed}: no schedule\n{traceback.format_exc()}"
        return Attempt("internal error", text)
    primitives = [step.primitive for step in case.steps]
    try:
        return Attempt(primitives=primitives, reached=check(case))
    except Exception as problem:
        error: Exception = problem
    kind = type(error)
    name = case.expression.template

    def remade(choices):
        return random_expression(_Exhausted(), name, choices)

    small = shrink(case, lambda fewer: isinstance(failure(fewer), kind), remade)
    error = failure(small) or error
    details = "".join(traceback.format_exception(error, limit=-6))
    label = "mismatch" if isinstance(error, Wrong) else "internal error"
    line = replay_line(seed, case, small) + (" --threads" if walk is ThreadWalk else "")
    text = (
        f"== seed {seed} ({name}): {label}; data seed {small.seed}\n{small}\n{details}"
        f"\nreplay the smaller case: {line}"
    )
    return Attempt(label, text, primitives)


def failure(case: Case) -> Exception | None:
    """Return the error of a case, if it fails."""
    try:
        check(case)
    except Exception as error:
        return error
    return None


def replay_line(seed: int, case: Case, small: Case) -> str:
    """Return the command that makes the smaller case."""
    kept, at = [], 0
    for n, step in enumerate(case.steps):
        if at < len(small.steps) and step == small.steps[at]:
            kept.append(n)
            at += 1
    return (
        f"python -m tests.fuzz_schedules --replay {seed} --template {case.expression.template} "
        f"--steps {','.join(map(str, kept)) or 'none'} "
        f"--choices {','.join(map(str, small.expression.choices)) or 'none'}"
    )


class _Exhausted:
    """Stands for a random source after the recorded choices: always the simplest."""

    def choices(self, population, weights=None):
        return [population[0]]

    def randrange(self, limit: int) -> int:
        return 0


# -- files -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other campaigns out of the folder."""
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SystemExit(f"another campaign is running in {folder}") from None
        yield


def _read(folder: Path) -> State:
    path = folder / "state.json"
    return State(**json.loads(path.read_text())) if path.exists() else State()


def _write(folder: Path, state: State) -> None:
    new = folder / "state.json.new"
    new.write_text(json.dumps(asdict(state)))
    os.replace(new, folder / "state.json")


def _append(path: Path, item: dict[str, object]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(item) + "\n")


def _count_crash(folder: Path, state: State) -> None:
    """Count the case that ended the process of the last run."""
    path = folder / "current"
    text = path.read_text().split() if path.exists() else []
    if not text:
        return
    seed = int(text[0])
    print(f"seed {seed} ended the process: python -m tests.fuzz_schedules --replay {seed}")
    _append(folder / "failures.jsonl", {"seed": seed, "kind": "crash", "text": ""})
    state.cases += max(seed + 1 - state.next_seed, 0)  # those since the last save passed
    state.internal_errors += 1
    state.next_seed = max(state.next_seed, seed + 1)
