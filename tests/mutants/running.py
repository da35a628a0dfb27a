"""Let a mutant live in a process of its own, and see which check catches it."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import pytest

from dlcompiler.errors import DLCompilerError, InternalError
from tests.codegen.accelerator.random_programs import check as check_program
from tests.fuzz.campaign import failure
from tests.fuzz.checks import Wrong, case_of
from tests.fuzz.reads import attempt
from tests.graph.pass_cases import check as check_graph
from tests.mutants.accelerators import ACCELERATORS
from tests.mutants.arithmetic import ARITHMETIC
from tests.mutants.codegen import CODEGEN
from tests.mutants.graphs import GRAPHS
from tests.mutants.legality import LEGALITY
from tests.mutants.lowering import LOWERING
from tests.mutants.mutant import Mutant
from tests.mutants.passes import PASSES
from tests.mutants.patching import Patch
from tests.mutants.safety import SAFETY

MUTANTS: tuple[Mutant, ...] = (
    *LOWERING,
    *LEGALITY,
    *PASSES,
    *ARITHMETIC,
    *CODEGEN,
    *SAFETY,
    *GRAPHS,
    *ACCELERATORS,
)
TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
DEADLINE_S = 300
BROKEN = "broken mutant"


@dataclass(frozen=True)
class Outcome:
    """What caught a mutant (nothing, if `by` is empty), and on which case."""

    by: str
    where: str
    text: str
    seconds: float


def run(mutant: Mutant, *, cases: int, with_tests: bool) -> Outcome:
    """Run the checks on a mutant, in a process of its own: it may crash or hang."""
    command = [sys.executable, "-m", "tests.mutants.running", mutant.name, str(cases)]
    command += ["--tests"] if with_tests else []
    start = time.monotonic()
    try:
        child = subprocess.run(
            command, capture_output=True, text=True, timeout=DEADLINE_S, check=False, cwd=ROOT
        )
    except subprocess.TimeoutExpired:
        return Outcome("time-out", "", "", time.monotonic() - start)
    seconds = time.monotonic() - start
    lines = child.stdout.splitlines()
    if child.returncode:
        kind = "crash" if child.returncode < 0 else BROKEN
        return Outcome(kind, f"exit status {child.returncode}", child.stderr, seconds)
    return Outcome(*json.loads(lines[-1]), seconds)


def live(name: str, cases: int, with_tests: bool) -> tuple[str, str, str]:
    """Run the checks on a mutant in this process."""
    mutant = next(mutant for mutant in MUTANTS if mutant.name == name)
    with Patch() as patch:
        mutant.make(patch)
        if mutant.file.startswith("graph/"):
            found = caught_by_graphs(cases // 8)
        elif "/accelerator" in mutant.file:
            found = caught_by_programs(cases // 20)
        else:
            found = caught_by_cases(cases)
            found = found if found[0] else caught_by_reads(cases // 2)
        return caught_by_tests(mutant) if not found[0] and with_tests else found


def caught_by_cases(cases: int) -> tuple[str, str, str]:
    """Return the check that fails first, its case, and its text."""
    for seed in range(cases):
        try:
            error = failure(case_of(seed))
        except Exception as problem:
            error = problem
        if error is not None:
            return check_of(error), f"seed {seed}", f"{type(error).__name__}: {error}"
    return "", "", ""


def caught_by_reads(cases: int) -> tuple[str, str, str]:
    """Return which of the reads between guarded pages fails; one outside ends the process."""
    for seed in range(cases):
        try:
            attempt(seed)
        except Exception as error:
            return "reads between guarded pages", f"seed {seed}", f"{type(error).__name__}: {error}"
    return "", "", ""


def caught_by_graphs(cases: int) -> tuple[str, str, str]:
    """Return the first random graph that passes change or refuse."""
    for seed in range(cases):
        try:
            check_graph(seed)
        except Exception as error:
            return "random graphs", f"seed {seed}", f"{type(error).__name__}: {error}"
    return "", "", ""


def caught_by_programs(cases: int) -> tuple[str, str, str]:
    """Return the first random program of an accelerator that computes something else."""
    for seed in range(cases):
        try:
            check_program(seed, 3)
        except Exception as error:
            where = f"seed {seed}"
            return "random programs", where, f"{type(error).__name__}: {error}"
    return "", "", ""


def check_of(error: Exception) -> str:
    """Name the check that an error comes from."""
    text = str(error)
    frames = traceback.extract_tb(error.__traceback__)
    if frames and Path(frames[-1].filename).parent == TESTS / "mutants":
        return BROKEN
    if isinstance(error, Wrong):
        if " interpreted: " not in text.partition("\n")[0]:
            return "machine code against te.evaluate"
        if isinstance(error.__cause__, DLCompilerError):
            return f"interpreter: {getattr(error.__cause__, 'kind', 'error')}"
        return "interpreter against te.evaluate"
    if isinstance(error, InternalError):
        checks = {"verify": "verifier", "lower": "analysis"}
        return checks.get(text.split()[0], "internal check")
    return "refusal" if isinstance(error, DLCompilerError) else "exception"


def caught_by_tests(mutant: Mutant) -> tuple[str, str, str]:
    """Return whether the tests of the mutant's package notice."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        status = pytest.main(["-x", "-q", "-n0", str(TESTS / mutant.tests)])
    last = output.getvalue().strip().splitlines()[-1:]
    return ("unit tests", f"tests/{mutant.tests}", "".join(last)) if status == 1 else ("", "", "")


if __name__ == "__main__":
    print(json.dumps(live(sys.argv[1], int(sys.argv[2]), "--tests" in sys.argv)))
