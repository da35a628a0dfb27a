"""Programs as texts, and a check that a pass changes no result."""

from __future__ import annotations

import inspect
import sys
import textwrap

from dlcompiler.errors import ScheduleError
from dlcompiler.ir import verify_func
from dlcompiler.passes import simplify
from dlcompiler.pipeline import lower
from tests.fuzz.checks import Case, Oracle, case_of, check_interpreted
from tests.passes.reading import read


def example(run, part):
    """Return the text after *Before*:: or *After*:: of the docstring of a pass' module."""
    _, _, rest = inspect.getdoc(sys.modules[run.__module__]).partition(f"*{part}*::\n")
    lines = rest.strip("\n").splitlines()
    end = next((n for n, line in enumerate(lines) if line and not line.startswith(" ")), None)
    return textwrap.dedent("\n".join(lines[:end])).rstrip() + "\n"


def after(run, text, outputs=("C",)):
    """Return the text of what a pass makes of a program's text."""
    func = read(textwrap.dedent(text), outputs)
    verify_func(func)
    result = run(func)
    verify_func(result)
    return str(result)


def shows(run, change=None, outputs=("C",)):
    """Check that a pass does what the docstring of its module shows."""
    before = example(run, "Before")
    assert str(read(before)) == before
    assert after(change or run, before, outputs) == example(run, "After")


def keeps_results(run, seeds, *, prepare=(simplify,), is_idempotent=True):
    """Check a pass on random lowered schedules; return how many programs it changed."""
    return sum(_keeps_results(run, case_of(seed), prepare, is_idempotent) for seed in seeds)


def _keeps_results(run, case: Case, prepare, is_idempotent):
    schedule, programs = case.schedule(), []
    results = [t for t in case.expression.outputs if t not in case.expression.inputs]
    results = list(dict.fromkeys(results))
    try:
        args = [*case.expression.inputs, *results]
        lower(schedule, args, observers=[lambda c: programs.append(c.after)])
    except ScheduleError:
        return False
    before = programs[0]
    for step in prepare:
        before = step(before)
    changed = run(before)
    if changed is before:
        return False
    verify_func(changed)
    if is_idempotent:
        assert run(changed) is changed, f"not idempotent\n{changed}\n{run(changed)}"
    for values in case.expression.sizes(case.seed):
        check_interpreted(Oracle(case, results, values), {"after the pass": changed})
    return True
