"""Dataflow graph of a schedule's stages, with the place where each stage is computed."""

from __future__ import annotations

from dlcompiler.schedule import AttachedAt, Schedule, StageState, State
from dlcompiler.schedule.inference.recurrences import hosts
from dlcompiler.views.loops.line_keys import loop_key
from dlcompiler.views.render.boxes import arrow, box, box_size, count, extent_of
from dlcompiler.views.render.layered import layered
from dlcompiler.views.render.scene import Scene


def dataflow_scene(schedule: Schedule) -> Scene:
    """Return the dataflow graph of a schedule's stages, with the place where each is computed.

    Parameters
    ----------
    schedule
        The schedule, at the state to show.

    Returns
    -------
    Scene
        A box for each stage, an arrow from each producer to each of its readers.
    """
    state = schedule.state
    stages = {stage.name: stage for stage in state.stages}
    edges = _reads(state)
    texts = {name: _stage_lines(state, stage) for name, stage in stages.items()}
    places = layered({name: box_size(lines) for name, lines in texts.items()}, edges)
    marks = [arrow(places[a], places[b]) for a, b in edges]
    for name, lines in texts.items():
        marks += box(places[name], lines, [loop_key(name)], is_dashed=stages[name].is_inlined)
    width, height = extent_of(places)
    computed = [stage for stage in state.stages if not stage.is_placeholder]
    return {
        "title": "Stages",
        "summary": _stages_summary(state),
        "how_to_read": "values flow down the arrows. Each box shows what a stage stores, and where "
        "it is computed. A dashed box is inlined: it stores nothing, its readers compute it.",
        "width": width,
        "height": height,
        "marks": marks,
        "table": {
            "columns": ["stage", "stores", "scope", "computed", "read by"],
            "rows": [
                [
                    stage.name,
                    _stores(stage),
                    stage.scope,
                    _where(state, stage),
                    ", ".join(b for a, b in edges if a == stage.name),
                ]
                for stage in (*computed, *(s for s in state.stages if s.is_placeholder))
            ],
        },
    }


def _reads(state: State) -> list[tuple[str, str]]:
    pairs: dict[tuple[str, str], None] = {}
    for stage in state.stages:
        for tensor in stage.op.input_tensors:
            producer = state.producer_of(tensor)
            if tensor not in producer.states:  # the scan is drawn below what its steps compute
                pairs[producer.name, stage.name] = None
    return list(pairs)


def _stores(stage: StageState) -> str:
    tensor = stage.tensors[0]
    return f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]"


def _where(state: State, stage: StageState) -> str:
    if stage.is_placeholder:
        return "input"
    if stage.is_inlined:
        return "inlined"
    at = stage.attachment
    if isinstance(at, AttachedAt):
        return f"inside a loop of {at.stage}"
    if stage.name in hosts(state):
        return f"at each step of {hosts(state)[stage.name].name}"
    return "output" if stage.is_output else "in loops of its own"


def _stage_lines(state: State, stage: StageState) -> list[str]:
    scope = "" if stage.scope == "global" else f" in {stage.scope}"
    return [stage.name, _stores(stage) + scope, _where(state, stage)]


def _stages_summary(state: State) -> str:
    computed = [stage for stage in state.stages if not stage.is_placeholder]
    inlined = sum(stage.is_inlined for stage in computed)
    attached = sum(isinstance(stage.attachment, AttachedAt) for stage in computed)
    inputs = len(state.stages) - len(computed)
    return (
        f"{count(inputs, 'input')}, {count(len(computed), 'computed stage')}: {attached} inside a "
        f"loop of a reader, {inlined} inlined."
    )
