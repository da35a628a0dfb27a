"""Contents of each part of a fusion view."""

from __future__ import annotations

from typing import Any

from dlcompiler.runtime.timing import format_ratio, format_seconds
from dlcompiler.views.graphs.fused_graph import FusedGraph, Verdict
from dlcompiler.views.graphs.fusion_picture import fusion_picture, kernel_key, summary
from dlcompiler.views.graphs.fusion_scene import arena_scene, decision_table, times_scene
from dlcompiler.views.graphs.module_card import shortened
from dlcompiler.views.graphs.pass_steps import step_facts
from dlcompiler.views.render.scene import Scene
from dlcompiler.views.render.units import format_bytes
from dlcompiler_widgets.graphs.analysis import Wishes
from dlcompiler_widgets.graphs.session import Session

Json = dict[str, Any]
ON_CPUS = "This is the plan for CPUs; on a GPU, no value is stored in the place of another."
NOT_MEASURED = "not measured: press Measure"


def head(session: Session, doing: str) -> Json:
    """Return the bar: what there is, and what the last decision changed."""
    now, old = session.found.graph, session.before
    before = [] if old is None else _totals(old[1])
    rows = []
    for n, (label, value) in enumerate(_totals(now)):
        earlier = before[n][1] if before and before[n][1] != value else ""
        rows.append([label, value, earlier])
    if session.source.target.device != "cpu":
        rows[1][0] = "arena, as for a CPU"
    if session.at is not None:
        rows[0][0] = "kernels after all passes"
    rows.append(["time of a call", *_time(session)])
    return {
        "title": f"Fusion of {shortened(now.function)} on {shortened(session.source.target.name)}",
        "summary": summary(session.graph),
        "facts": rows,
        "doing": doing,
        "why_not_decided": session.why_not_decided,
        "wishes": [f"{w.kind}: {shortened(w.subject[0])}, {shortened(w.subject[1])}"
                   for w in session.wishes],
    }  # fmt: skip


def _totals(graph: FusedGraph) -> list[tuple[str, str]]:
    arena = graph.why_no_plan and f"not planned: {graph.why_no_plan}"
    moved = "not known: a size is known only in a run"
    if graph.moved is not None:
        moved = f"{format_bytes(graph.moved)} (predicted from shapes)"
    return [
        ("kernels", str(len(graph.kernels))),
        ("arena", format_bytes(graph.plan.bytes) if graph.plan else arena),
        ("read and written", moved),
    ]


def _time(session: Session) -> tuple[str, str]:
    """Return the time now and before the last decision, each with where it was measured."""
    now = session.measured.get(session.wishes)
    old = session.measured.get(session.before[0]) if session.before else None
    before = old.call if old is not None and session.before[0] != session.wishes else ""  # type: ignore[index]
    return (now.call + f", {now.where}" if now else NOT_MEASURED), before


def picture(session: Session) -> Json:
    """Return the graph."""
    return {**fusion_picture(session.graph, session.shown), "after": session.at}


def verdicts(session: Session) -> Json:
    """Return all verdicts: the table, and what is said of each."""
    found = session.graph.verdicts
    return {
        "table": decision_table(found),
        "each": [_verdict(session, verdict) for verdict in found],
    }


def _verdict(session: Session, verdict: Verdict) -> Json:
    state, time = "fused" if verdict.is_fused else "not fused", _measured_effect(session, verdict)
    facts = [
        ("producer", shortened(verdict.a, 200)), ("consumer", shortened(verdict.b, 200)),
        ("verdict", state), ("rule", verdict.rule), ("why", verdict.reason),
        ("effect", f"{verdict.effect} (predicted from shapes)" if verdict.effect else "none"),
        ("buffer", verdict.buffer), ("time", time or "not measured with and without it"),
        ("to change it", verdict.remedy),
    ]  # fmt: skip
    if verdict.wish:
        facts.append(("you asked to", verdict.asked))
    return {"facts": [(label, value) for label, value in facts if value],
            "time": time, "is_fused": verdict.is_fused, "wish": verdict.wish}  # fmt: skip


def _measured_effect(session: Session, verdict: Verdict) -> str:
    """Return what fusing an edge changes; "": the model was not measured with it and without it."""
    pair = {verdict.a, verdict.b}

    def without(wishes: Wishes) -> Wishes:
        return tuple(w for w in wishes if set(w.subject) != pair)

    rest = without(session.wishes)
    others = (m for w, m in session.measured.items() if w != session.wishes and without(w) == rest)
    other = next(others, None)
    now = session.measured.get(session.wishes)
    if now is None or other is None:
        return ""
    fused, apart = (now, other) if verdict.is_fused else (other, now)
    ratio = format_ratio(apart.call_s / fused.call_s) if fused.call_s else ""
    return f"a call takes {fused.call} fused, {apart.call} apart ({ratio}), {now.where}"


def passes(session: Session) -> Json:
    """Return the passes, and what the one that is shown changed."""
    found = session.found
    steps = [{"name": step.name, "effect": step.effect, "is_unchanged": step.is_unchanged,
              "time": format_seconds(step.seconds)} for step in found.steps]  # fmt: skip
    at = len(steps) if session.at is None else session.at
    facts = step_facts(found.steps[at - 1]) if steps and at else []
    failure = None
    if found.failure is not None:
        failure = "; ".join(filter(None, (found.failure.problem, found.failure.because)))
    message = "" if steps else "The module was fused before: its passes are not known."
    return {"steps": steps, "at": at, "facts": facts, "failure": failure, "message": message}


def arena(session: Session) -> Json:
    """Return the plan of the arena as a picture, or why there is none."""
    graph = session.found.graph
    if graph.plan is None:
        return {"scene": None, "message": f"There is no plan: {graph.why_no_plan}."}
    if not graph.plan.placements:
        return {"scene": None, "message": "No value lies in the arena: kernels store results only."}
    scene = arena_scene(graph.plan)
    if session.source.target.device != "cpu":
        scene["summary"] = f"{ON_CPUS} {scene['summary']}"
    return {"scene": scene, "message": ""}


def times(session: Session) -> Json:
    """Return the measured time of each kernel as a picture, or a sentence."""
    scene = times_picture(session)
    if scene is None:
        return {
            "scene": None,
            "message": "Nothing is measured for these decisions yet: press Measure.",
        }
    return {"scene": scene, "message": ""}


def times_picture(session: Session) -> Scene | None:
    """Return the picture of the times; None if nothing is measured."""
    found = session.measured.get(session.wishes)
    if found is None:
        return None
    numbers = {kernel.name: kernel_key(n) for n, kernel in enumerate(session.found.graph.kernels)}
    keys = [numbers.get(name, "") for name, _ in found.kernels]
    return times_scene(found.kernels, keys, found.where)


PARTS = {"picture": picture, "verdicts": verdicts, "passes": passes, "arena": arena, "times": times}
"""The parts of the page, but for the bar."""
