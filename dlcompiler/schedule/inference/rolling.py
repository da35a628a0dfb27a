"""Rolling buffers: how the window of a stage moves from one iteration to the next.

A stage that is attached at a loop is computed for a region, its window. If each iteration moves the
window by the same step along one dimension, the stage may keep the elements that two windows share
and compute only the new ones (`passes.inject_rolling_buffer`). This is correct because

- the elements of a stage do not depend on the iteration that computes them,
- the iterations run one after the other, and the first of them that runs is iteration 0,
- if an iteration is left out, all later ones are left out as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from dlcompiler.arith import Affine, Analyzer
from dlcompiler.arith.affine import atom_key
from dlcompiler.ir import Axis, Compare, Expr, Var, Window, free_vars, is_concurrent
from dlcompiler.schedule.inference.bounds import StageBounds, infer_bounds
from dlcompiler.schedule.inference.relations import related
from dlcompiler.schedule.inference.thread_loops import is_shared, reduced_by_threads
from dlcompiler.schedule.state import AttachedAt, StageState, State
from dlcompiler.schedule.verdict import Illegal, IllegalKind


def moving_window(state: State, stage: StageState) -> Window | Illegal | None:
    """Return how the window of a stage moves with the loop that it is attached at.

    Parameters
    ----------
    state
        A state whose bounds are defined and whose attachments are placed.
    stage
        An attached stage with a rolling buffer.

    Returns
    -------
    Window or Illegal or None
        None if no iteration needs an element of the one before: there is nothing to keep.
    """
    at = stage.attachment
    assert isinstance(at, AttachedAt)
    host = state.stage(at.stage)
    known = infer_bounds(state)
    own, outer = known.stages[stage.name], known.stages[host.name]
    for problem in _unordered(state, stage, host, at.axis):
        return problem
    count = outer.extents[at.axis]
    if isinstance(count, int) and count <= 1:
        return None
    var, loop = outer.loop_vars[at.axis], host.label(at.axis)
    for guard in outer.guards:
        if _is_around(guard, var, host, at.axis, outer) and not _lets_begin(guard, var):
            return _refusal(
                stage, loop, "semantic", "its first iterations may be left out", f"if {guard}:"
            )
    steps = [_coefficient(span.first, var) for span in own.region]
    moving = [n for n, step in enumerate(steps) if step != 0]
    if not moving:
        because = "each iteration needs the same part"
        return _refusal(stage, loop, "structural", because, hint="attach it further out")
    names = " and ".join(stage.paths[stage.op.axis[n]] for n in moving)
    size, step = own.region[moving[0]].extent, steps[moving[0]]
    if len(moving) > 1 or step is None:
        because = f"what it needs does not move by a constant step along {names} alone"
        return _refusal(stage, loop, "limit", because)
    if not isinstance(size, int) or step < 0:
        because = "only a part of known size that moves forward can roll"
        got = f"{size} elements along {names}, and a step of {step}"
        return _refusal(stage, loop, "limit", because, got)
    return Window(var, tuple(step or 0 for step in steps)) if step < size else None


def _refusal(
    stage: StageState,
    loop: str,
    kind: IllegalKind,
    because: str,
    got: str | None = None,
    hint: str = "attach it at another loop, or leave rolling_buffer out",
) -> Illegal:
    return Illegal(
        kind,
        f"{stage.name} cannot keep what the next iteration of {loop} needs",
        hint,
        got,
        because,
        (stage.name,),
    )


def _unordered(state: State, stage: StageState, host: StageState, axis: Axis) -> Iterator[Illegal]:
    """Yield the reasons why an iteration may not read elements of the iteration before it."""
    loop = host.label(axis)
    if is_concurrent(host.kind(axis)):
        because = f"the iterations of {loop} ({host.kind(axis)}) run in any order, or at once"
        yield _refusal(stage, loop, "semantic", because, hint="attach it at a serial loop")
    if is_shared(state, stage) or reduced_by_threads(stage):
        because = f"the threads of a block compute {stage.name} together"
        yield _refusal(stage, loop, "limit", because)
    if stage.double_buffered_by:
        because = f"{stage.name} is double-buffered: the next part is computed ahead"
        yield _refusal(stage, loop, "limit", because, hint="choose one of the two")
    if not host.rolled_by or not isinstance(host.attachment, AttachedAt):
        return
    window = moving_window(state, host)
    if isinstance(window, Window):
        (dimension,) = (n for n, step in enumerate(window.steps) if step)
        if axis in related(host.relations, (host.op.axis[dimension],)):
            because = (
                f"{host.name} has a rolling buffer as well: it leaves out iterations of {loop}"
            )
            yield _refusal(stage, loop, "limit", because)


def _coefficient(form: Affine, var: Var) -> int | None:
    """Return the coefficient of `var` in a sum; None if the sum is not linear in `var`."""
    own = form.terms.get(atom_key(var))
    others = (term for term in form.terms.values() if term is not own)
    if any(var in free_vars(term.atom) for term in others):
        return None
    return 0 if own is None else own.factor


def _is_around(guard: Expr, var: Var, host: StageState, axis: Axis, bounds: StageBounds) -> bool:
    """Tell whether a guard uses `var` but no variable of a loop inside the loop `axis`."""
    inside = {bounds.loop_vars[leaf] for leaf in host.leaves[host.position(axis) + 1 :]}
    used = free_vars(guard)
    return var in used and not used & inside


def _lets_begin(guard: Expr, var: Var) -> bool:
    """Tell whether a guard that is false for one value of `var` is false for all larger values."""
    if not isinstance(guard, Compare) or guard.op != "lt":
        return False
    analyzer = Analyzer({})
    below, above = (_coefficient(analyzer.affine(part), var) for part in (guard.a, guard.b))
    return below is not None and above is not None and below - above >= 0
