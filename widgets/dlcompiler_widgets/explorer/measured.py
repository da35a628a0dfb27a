"""Draw the measured times of a session: the ladder of its current branch, and the roofline."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dlcompiler.analysis import work_of
from dlcompiler.analysis.traffic import compulsory_bytes, traffic
from dlcompiler.analysis.work import float_dtypes
from dlcompiler.errors import DLCompilerError
from dlcompiler.measurement import numpy_counterpart
from dlcompiler.measurement.ceilings import Ceilings
from dlcompiler.measurement.fma_peak import LLVM_TYPES
from dlcompiler.runtime.threads import num_threads
from dlcompiler.runtime.timing import measured_here
from dlcompiler.schedule import Node
from dlcompiler.views.history.ladder import Ladder, Reference, Rung, ladder, ladder_scene
from dlcompiler.views.history.roofline import Point, roofline_scene
from dlcompiler.views.memory.footprints import footprint_of, is_for_device
from dlcompiler.views.render.scene import Scene
from dlcompiler.views.tuning.chart import text
from dlcompiler_widgets.explorer.machine import MEASURING
from dlcompiler_widgets.explorer.measuring import Measured
from dlcompiler_widgets.explorer.targets import runs_on_processor, times_of, why_not_measured

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

Json = dict[str, Any]

BUSY = "a program is faster than the peak, so the machine was busy then: measuring it again …"


def measured_of(node: Node) -> Measured | None:
    """Return the measurement of a state; None if there is none, or its result is known to be wrong.

    A note that is only a text is no measurement.
    """
    found = node.notes.get("measured")
    if not isinstance(found, Measured) or _is_about(node, "wrong", found.target):
        return None
    return found


def _is_about(node: Node, kind: str, target: str) -> bool:
    """Tell whether a state has a note about code for a target, or one that names no target."""
    if kind not in node.notes:
        return False
    known = getattr(node.notes[kind], "target", "")
    return not known or not target or known == target


def own_measured(session: Session, node: Node) -> Measured | None:
    """Return the measurement of a state if it was made where programs of the session run.

    Times on a device are not compared with NumPy's, or with the peak, of the processor. A time
    that does not name its machine is one of the processor.
    """
    found, here = measured_of(node), times_of(session.target)
    if found is None or here is None:
        return None
    return found if (found.on or measured_here().on) == here.on else None


def measured_for(session: Session, node: Node) -> Measured | None:
    """Return the measurement of a state if it is one of code for the session's target."""
    found = own_measured(session, node)
    return found if found and found.target in ("", session.target.name) else None


def branch_of(session: Session) -> list[Node]:
    """Return the states of the current branch: those on the way here, and those ahead."""
    return [*session.schedule.node.path(), *session.schedule.ahead()]


def is_measured(session: Session) -> bool:
    """Tell whether a state of the current branch has a time: then the ladder has a bar."""
    return any(measured_of(node) for node in branch_of(session))


def ladder_of(session: Session) -> Ladder:
    """Return the ladder of the current branch."""
    nodes = branch_of(session)
    rungs = [_rung(session, node) for node in nodes]
    known = [each for node in nodes if (each := own_measured(session, node))]
    notes = [why] if (why := why_not_measured(session)) else []
    can_run = not why and not session.is_recording
    if not known:
        return ladder(rungs, (), notes, can_run=can_run)
    if not runs_on_processor(session.target):
        notes.append(_why_no_references(session))
        return ladder(rungs, (), notes, can_run=can_run)
    references = list(_numpy(session))
    if not references:
        notes.append(_why_no_numpy(session))
    peak = _peak(session, known)
    if isinstance(peak, Reference):
        references.append(peak)
    elif peak:
        notes.append(f"No peak: {peak}")
    return ladder(rungs, references, notes, can_run=can_run)


def ladder_picture(session: Session) -> Json:
    """Return the ladder as a picture, whose marks lead to states."""
    return {"scene": ladder_scene(ladder_of(session)), "actions": []}


def _is_here(session: Session, node: Node) -> bool:
    """Tell whether a state is to be marked as the current one.

    A recording marks none, so that all states of a branch share one ladder and one roofline.
    """
    return node is session.schedule.node and not session.is_recording


def _rung(session: Session, node: Node) -> Rung:
    title, is_here = node.name or node.title(), _is_here(session, node)
    notes, measured = node.notes, measured_of(node)
    problems = [kind for kind in ("wrong", "failed") if kind in notes]
    own = [kind for kind in problems if _is_about(node, kind, session.target.name)]
    others = [
        f"{kind} for {notes[kind].target}: {notes[kind]}" for kind in problems if kind not in own
    ]
    if "wrong" in own:
        return Rung(node.id, title, "wrong", note=str(notes["wrong"]), is_here=is_here)
    if measured is not None:
        said = [f"a later run failed: {notes['failed']}"] if "failed" in own else []
        return _timed(session, node, measured, [*said, *others])
    if "measured" in notes and not isinstance(notes["measured"], Measured):
        note = f"noted as {notes['measured']}; Run measures it again"
        return Rung(node.id, title, note=note, is_here=is_here)
    if "failed" in own:
        return Rung(node.id, title, "failed", note=str(notes["failed"]), is_here=is_here)
    return Rung(node.id, title, note="; ".join(others), is_here=is_here)


def _timed(session: Session, node: Node, measured: Measured, more: Sequence[str]) -> Rung:
    """Return the rung of a measured state; `more` is what else is known of it."""
    timing = measured.shown
    is_other = measured.target not in ("", session.target.name)
    said = [f"code for {measured.target}"] if is_other else []
    said += [f"on {measured.on}"] if not measured.threads and measured.on else []
    said += [measured.copies] if measured.copies else []
    return Rung(
        node.id, node.name or node.title(), "measured", timing.median_s, timing.spread_s,
        timing.gflops or None, measured.threads, "; ".join([*said, *more]),
        _is_here(session, node), measured.target,
    )  # fmt: skip


def _numpy(session: Session) -> Iterator[Reference]:
    """Yield NumPy's median time for each number of threads, of all states of the history.

    NumPy is measured in turn with each state: the median of these is the program's.
    """
    found: dict[tuple[str, int], list[Measured]] = {}
    for node in session.schedule.history.history.walk():
        measured = own_measured(session, node)
        if measured is not None and measured.beside is not None:
            found.setdefault((measured.counterpart, measured.threads), []).append(measured)
    for (name, threads), group in sorted(found.items()):
        seconds = statistics.median(m.beside.a.median_s for m in group if m.beside)
        flops = group[0].shown.flops
        rate = flops / seconds / 1e9 if flops else None
        text = f"{name}, {_threads(threads)}, measured"
        is_only = len({number for _, number in found}) == 1
        yield Reference(
            text, seconds, rate, "numpy:" if is_only else f"numpy, {_threads(threads)}:"
        )


def _why_no_numpy(session: Session) -> str:
    if numpy_counterpart(session.args) is None:
        return "No NumPy function is known that computes this program."
    return "NumPy was not measured with these states."


def _why_no_references(session: Session) -> str:
    """Return why times on a device have nothing beside them."""
    found = times_of(session.target)
    name = found.on if found is not None and found.on else f"the device of {session.target.name}"
    return f"{name}: its peak is not known, and NumPy runs on the processor, so neither is shown."


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _peak(session: Session, known: Sequence[Measured]) -> Reference | str:
    """Return the time and the rate at the FMA peak, or why there is none."""
    flops = known[0].shown.flops
    if not flops:
        return "no float operations are counted in the program."
    found = peak_ceilings(session, max(each.threads for each in known))
    if isinstance(found, str):
        return found
    if _is_exceeded(found, known) and session.machine.doubt(found):
        return BUSY
    text = f"FMA peak, {found.dtype}, {_threads(found.threads)}, {found.provenance.kind}"
    seconds, short = flops / found.peak_gflops / 1e9, f"peak, {_threads(found.threads)}:"
    return Reference(text, seconds, found.peak_gflops, short)


def _is_exceeded(ceilings: Ceilings, known: Sequence[Measured]) -> bool:
    """Tell whether a state, or NumPy beside it, is faster than the peak: it is too low then."""
    fitting = [each for each in known if each.threads <= ceilings.threads]
    timings = [each.shown for each in fitting]
    timings += [each.beside.a for each in fitting if each.beside is not None]
    rates = [each.gflops or 0.0 for each in timings]
    return max(rates, default=0.0) > 1.02 * ceilings.peak_gflops


def peak_ceilings(session: Session, threads: int) -> Ceilings | str:
    """Return the ceilings for the float operations of a program, or why they are not known."""
    why, dtype = _why_no_peak(session), _dtype(session)
    return why or session.machine.ceilings(threads, dtype)


def _dtype(session: Session) -> str:
    """Return the dtypes of the program's float operations; the results may have others."""
    return " and ".join(sorted(float_dtypes(session.schedule.outputs)))


def _why_no_peak(session: Session) -> str:
    """Return why the peak for a program's float operations is not known; '' if it can be measured.

    A program that computes in several dtypes has no single peak.
    """
    if not runs_on_processor(session.target):
        return f"the ceilings of the device of {session.target.name} are not known."
    dtype = _dtype(session)
    if dtype in LLVM_TYPES:
        return ""
    return f"the peak is measured for {' or '.join(LLVM_TYPES)}, not for {dtype}."


# -- roofline -------------------------------------------------------------------------------------


def roofline_picture(session: Session) -> Json:
    """Return the roofline of all measured states, or a text that says why there is none."""
    if why := _why_no_roofline(session):
        return {"scene": _nothing(f"No roofline: {why}"), "actions": []}
    again = {"op": "machine", "text": "Measure the machine again"}
    ceilings = peak_ceilings(session, _threads_shown(session))
    if isinstance(ceilings, str):
        is_failed = ceilings != MEASURING
        return {"scene": _nothing(ceilings), "actions": [again] if is_failed else []}
    history = session.schedule.history.history
    known = [each for node in history.walk() if (each := own_measured(session, node))]
    if _is_exceeded(ceilings, known) and session.machine.doubt(ceilings):
        return {"scene": _nothing(BUSY), "actions": []}
    points = list(_points(session, ceilings))
    return {"scene": roofline_scene(points, ceilings), "actions": [again]}


def _nothing(why: str) -> Scene:
    """Return a picture with the reason why there is no roofline."""
    return {
        "title": "Roofline", "summary": why[0].upper() + why[1:],
        "how_to_read": "a roofline compares the rate of each measured state with the highest rates "
        "of this machine, which are measured once and kept for a month.",
        "width": 420, "height": 30, "table": {"columns": [], "rows": []},
        "marks": [text(0, 20, "There is nothing to draw.")],
    }  # fmt: skip


def _why_no_roofline(session: Session) -> str:
    """Return why a program has no roofline; '' if it has one."""
    if why := why_not_measured(session):
        return f"{why} Choose the target cpu: this machine."
    try:
        work = work_of(session.schedule.outputs)
    except DLCompilerError:
        return "the sizes of the program are known only when it runs."
    if work is None:
        return "code from outside computes a part, whose operations are not known."
    if not work.flops:
        return "the program has no float operations; the ladder compares times."
    return _why_no_peak(session)


def _threads_shown(session: Session) -> int:
    """Return the number of threads of the ceilings: that of the current state's measurement.

    Without one, it is the largest number of threads of any measured state.
    """
    here = own_measured(session, session.schedule.node)
    if here is not None:
        return here.threads
    nodes = session.schedule.history.history.walk()
    used = [measured.threads for node in nodes if (measured := own_measured(session, node))]
    return max(used, default=num_threads())


def _points(session: Session, ceilings: Ceilings) -> Iterator[Point]:
    order = branch_of(session)
    others = [n for n in session.schedule.history.history.walk() if n not in order]
    for node in [*order, *others]:
        measured = own_measured(session, node)
        timing = measured.shown if measured else None
        if measured is None or timing is None or not timing.gflops or not timing.flops:
            continue
        moved, least = traffic_of(session, node)
        if least and all(moved.values()):
            yield Point(
                node.id, _title_of(session, node, measured), timing.gflops,
                timing.flops, moved, least, _resident(session, least), measured.threads,
                _is_here(session, node),
            )  # fmt: skip


def _title_of(session: Session, node: Node, measured: Measured) -> str:
    """Return the name of a state, with the target if its code was made for another one."""
    title = node.name or node.title()
    is_other = measured.target not in ("", session.target.name)
    return f"{title}, code for {measured.target}" if is_other else title


def traffic_of(session: Session, node: Node) -> tuple[Mapping[str, int], int]:
    """Return the predicted traffic of each cache, and the size of inputs and outputs [byte]."""
    try:
        footprint = footprint_of(node.state, session.args, session.target)
        least = compulsory_bytes(footprint)
        if is_for_device(footprint, session.target):
            return {}, least
        fills = traffic(footprint, session.target)
    except DLCompilerError:
        work = work_of(session.schedule.outputs)
        return {}, work.bytes if work else 0
    return {name: sum(fill.moved_bytes for fill in each) for name, each in fills.items()}, least


def _resident(session: Session, size: int) -> str:
    """Return the nearest cache that holds all arrays from call to call; '' if none does."""
    fits = (level.name for level in session.target.caches if 0 < size <= level.bytes)
    return next(fits, "")
