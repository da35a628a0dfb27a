"""Contents of each part of a tuning dashboard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dlcompiler.errors import DLCompilerError
from dlcompiler.pipeline import lower
from dlcompiler.runtime.timing import format_rate, format_seconds
from dlcompiler.views.code.program import program
from dlcompiler.views.render.scene import Scene
from dlcompiler.views.tuning import (
    best_so_far,
    contributions,
    coordinates,
    headline,
    importance,
    knob_map,
    plane_map,
    predicted_measured,
    time_spent,
    trials_table,
    why_before,
)
from dlcompiler.views.tuning.series import key_of
from dlcompiler.views.tuning.space_points import value_text
from dlcompiler_widgets.explorer.status import Status, status_of
from dlcompiler_widgets.tuning.knowledge import Knowledge
from dlcompiler_widgets.tuning.session import PLANE, TABS, Session

Json = dict[str, Any]
NO_MODEL = "This tuner has no cost model and makes no predictions."
NOTHING_DONE = "No trial is done yet."
NOTHING_LEARNED = "The model has learned nothing yet: it needs a round of trials."
NOTHING_CHOSEN = (
    "Choose a trial to see what each feature adds to its prediction; take two of them as A and B "
    "to see why one is predicted faster than the other."
)


def head(session: Session) -> Json:
    """Return the headline above the pictures."""
    return {**headline(session.seen), "can_pause": session.run.state == "running",
            "can_resume": session.run.state == "paused",
            "can_stop": session.run.state in ("running", "paused")}  # fmt: skip


def progress(session: Session) -> tuple[Json, Scene]:
    """Return the chart of the best so far, with the choices of its axes."""
    scene = best_so_far(
        session.seen, against=session.against, shown=session.shown, chosen=session.chosen,
        width=session.widths["progress"],
    )  # fmt: skip
    return {"against": session.against, "shown": session.shown}, scene


def picture(session: Session, knowledge: Knowledge) -> tuple[Json, Scene | None]:
    """Return the open picture, or a sentence that says why there is none."""
    names = [knob.name for knob in session.seen.space.knobs]
    frame: Json = {
        "tab": session.tab,
        "tabs": [{"name": name, "text": text} for name, text in TABS.items()],
        "knobs": names if session.tab == "map" else [],
        "across": session.across,
        "up": session.up,
        "message": None,
    }
    found = PICTURES[session.tab](session, knowledge)
    if isinstance(found, str):
        return {**frame, "message": Status(found).to_json()}, None
    return frame, found


def _no_model(session: Session) -> str:
    """Return why there is no model: until the first trial is done, a tuner has not made its own."""
    return NO_MODEL if session.seen.rows or session.seen.is_over else NOTHING_DONE


def _predicted(session: Session, knowledge: Knowledge) -> Scene | str:
    if knowledge.model_name is None:
        return _no_model(session)
    return predicted_measured(session.seen, chosen=session.chosen, width=session.widths["picture"])


def _importance(session: Session, knowledge: Knowledge) -> Scene | str:
    name = knowledge.model_name
    if name is None:
        return _no_model(session)
    found = knowledge.importance()
    if not found:
        return NOTHING_LEARNED
    return importance(found, model=name, width=session.widths["picture"])


def _why(session: Session, knowledge: Knowledge) -> Scene | str:
    if knowledge.model_name is None:
        return _no_model(session)
    pair = (session.a, session.b)
    indices = [n for n in (pair if None not in pair else (session.chosen,)) if n is not None]
    rows = [row for n in indices if (row := session.seen.row(n))]
    if not rows:
        return NOTHING_CHOSEN
    explained = [knowledge.explanation(row.point) for row in rows]
    values = [session.seen.space.at(row.point).values for row in rows]
    width = session.widths["picture"]
    match explained:
        case [first, second] if first is not None and second is not None:
            return why_before(
                first, second, (key_of(rows[0].index), key_of(rows[1].index)),
                values=(values[0], values[1]),
                trial_s=(rows[0].seconds, rows[1].seconds), width=width,
            )  # fmt: skip
        case [only] if only is not None:
            return contributions(
                only, key_of(rows[0].index), values=values[0], trial_s=rows[0].seconds,
                width=width,
            )  # fmt: skip
    return NOTHING_LEARNED


def _knobs(session: Session, knowledge: Knowledge) -> Scene:
    return coordinates(
        session.seen, knowledge.ground, chosen=session.chosen, width=session.widths["picture"]
    )


def _map(session: Session, knowledge: Knowledge) -> Scene:
    shared = {"chosen": session.chosen, "width": session.widths["picture"]}
    if PLANE in (session.across, session.up):
        return plane_map(session.seen, knowledge.ground, knowledge.projection, **shared)  # type: ignore[arg-type]
    return knob_map(session.seen, knowledge.ground, session.across, session.up, **shared)  # type: ignore[arg-type]


def _time(session: Session, knowledge: Knowledge) -> Scene:
    return time_spent(session.seen, width=session.widths["picture"])


PICTURES = {
    "predicted": _predicted,
    "importance": _importance,
    "why": _why,
    "knobs": _knobs,
    "map": _map,
    "time": _time,
}


def trials(session: Session) -> tuple[Json, list[Any]]:
    """Return the table without its rows, and the rows."""
    table: Json = {**trials_table(session.seen, session.order), "chosen": _key(session.chosen),
                   "a": _key(session.a), "b": _key(session.b)}  # fmt: skip
    rows = table.pop("rows")
    return table, rows


def detail(session: Session) -> Json:
    """Return the details of the chosen trial; empty if none is chosen."""
    trial = session.trial(session.chosen)
    if trial is None:
        return {}
    facts = [("outcome", trial.outcome), ("round", str(trial.round)), ("why tried", trial.origin)]
    if trial.seconds is not None:
        spread = format_seconds(trial.result.spread_s or 0.0)
        facts.append(("measured", f"{format_seconds(trial.seconds)} ± {spread}"))
        facts.append(("rate", f"{format_rate(trial.gflops or 0)} GFLOP/s"))
    if trial.predicted_s is not None:
        facts.append(("predicted before it ran", format_seconds(trial.predicted_s)))
    if trial.result.is_noisy:
        facts.append(("warning", "the machine was busy, so this time is not reliable"))
    return {
        "key": key_of(trial.index),
        "title": f"Trial {trial.index}",
        "facts": facts,
        "config": [(name, value_text(value)) for name, value in trial.config.values.items()],
        "message": trial.result.message[:2000],
        "is_a": session.a == trial.index,
        "is_b": session.b == trial.index,
        "code": _code(session) if session.code_of == trial.index else None,
    }


def _code(session: Session) -> Json:
    """Return the program of the chosen trial, lowered on demand."""
    trial, plan = session.trial(session.chosen), session.run.plan
    assert trial is not None
    try:
        schedule, args = plan.operator.template(plan.workload, plan.target, trial.config)
        func = lower(schedule, args, target=plan.target, simple_mode=True)
    except DLCompilerError as error:
        return {"lines": [], "left_out": 0, "error": status_of(error).to_json()}
    found: Mapping[str, Any] = program(func)
    return {"lines": found["lines"], "left_out": found["left_out"], "error": None}


def _key(index: int | None) -> str | None:
    return None if index is None else key_of(index)
