"""Cards of stages, of verdicts on steps, and of lists of moves."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.schedule import AttachedAt, Move, Stage
from dlcompiler.schedule.verdict import Illegal, Legal, Pending, Verdict
from dlcompiler.views.cards.card import Card, card, card_html
from dlcompiler.views.loops.axis_graph import axes_scene
from dlcompiler.views.loops.loop_tree import loop_tree
from dlcompiler.views.render.markup import Markup
from dlcompiler.views.render.scene import Cell, Table

MOST_MOVES = 100


def stage_html(stage: Stage) -> Markup:
    """Return the card of a stage: where it is computed, and its loops."""
    return card_html(stage_card(stage))


def verdict_html(verdict: Verdict) -> Markup:
    """Return the card of a verdict on a step: legal, pending, or the reason why it is illegal."""
    return card_html(verdict_card(verdict))


def moves_html(moves: Sequence[Move]) -> Markup:
    """Return the card of a list of moves, as a table with their verdicts."""
    return card_html(moves_card(moves))


def stage_card(stage: Stage) -> Card:
    """Return the card of a stage: what it stores, where it is computed, and its loops."""
    state = stage.state
    shape = ", ".join(map(str, state.tensor.shape))
    text = f"a stage that stores {state.tensor.dtype}[{shape}] in {state.scope} memory"
    if state.is_placeholder:
        return card(state.name, f"an input, {state.tensor.dtype}[{shape}]")
    if stage.is_inlined:
        return card(state.name, "inlined: its readers compute it",
                    facts=[("computed from", _inputs(stage))])  # fmt: skip
    rows = [row for row in loop_tree(stage.schedule)["rows"] if row["stage"] == state.name]
    loops: list[list[Cell]] = [
        [row["name"], row["extent"], row["kind"],
         "reduction" if row["axis"] == "reduce" else "data", row["made_by"]]
        for row in rows if row["type"] == "loop"
    ]  # fmt: skip
    statement = next((row["name"] for row in rows if row["key"].endswith("//body")), "")
    table: Table = {"columns": ["loop", "extent", "kind", "axis", "made by"], "rows": loops}
    return card(
        state.name,
        text,
        facts=[("computed", _where(stage)), ("computed from", _inputs(stage))],
        scene=axes_scene(stage.schedule, state.name),
        tables=[("Its loops, outermost first", table)],
        code=statement,
    )


def _inputs(stage: Stage) -> str:
    return ", ".join(tensor.name for tensor in stage.op.input_tensors) or "constants"


def _where(stage: Stage) -> str:
    at = stage.state.attachment
    if not isinstance(at, AttachedAt):
        return "in loops of its own"
    host = stage.schedule.state.stage(at.stage)
    return f"inside loop {host.paths.get(at.axis, at.axis.name)} of {at.stage}"


def verdict_card(verdict: Verdict) -> Card:
    """Return the card of a verdict: legal, pending with its obligation, or why it is illegal."""
    match verdict:
        case Legal():
            return card("Legal", "the step keeps the meaning of the program", tone="good")
        case Pending():
            facts = [("pending", verdict.obligation)]
            return card("Pending", "legal now; a later step must follow before lowering",
                        tone="open", facts=facts)  # fmt: skip
        case Illegal():
            facts = [("kind", f"{verdict.kind}: {_KINDS[verdict.kind]}")]
            return card(
                "Illegal",
                verdict.reason,
                tone="bad",
                facts=[
                    *facts,
                    ("got", verdict.got),
                    ("expected", verdict.expected),
                    ("because", verdict.because),
                    ("conflicts", ", ".join(map(_place, verdict.conflicts))),
                    ("hint", verdict.hint),
                ],
            )


def _place(key: str) -> str:
    """Return a readable text for a key of the loop tree: ``loop i of C``."""
    stage, _, path = key.partition("/")
    if not path:
        return f"stage {stage}"
    return f"a statement of {stage}" if path.startswith("/") else f"loop {path} of {stage}"


_KINDS = {
    "structural": "it cannot be applied here",
    "semantic": "it would change the result, whatever follows",
    "limit": "a limit of the target or of this version",
}


def moves_card(moves: Sequence[Move]) -> Card:
    """Return a list of moves as a card: the legal ones, and the others with the reason."""
    legal = [move for move in moves if move.verdict]
    illegal = [move for move in moves if not move.verdict]
    return card(
        "Moves",
        f"{len(moves)} steps: {len(legal)} legal, {len(illegal)} not",
        tables=[
            (_caption(f"{sign} {words}", group), _table(columns, group))
            for sign, words, columns, group in (
                ("✓", "legal", ["to be chosen", "step that must follow"], legal),
                ("✕", "not legal", ["why", "hint"], illegal),
            )
            if group
        ],
    )


def _caption(words: str, moves: Sequence[Move]) -> str:
    if len(moves) <= MOST_MOVES:
        return f"{words} ({len(moves)})"
    return f"{words}: the first {MOST_MOVES} of {len(moves)}"


def _table(columns: list[str], moves: Sequence[Move]) -> Table:
    rows: list[list[Cell]] = [
        [move.primitive, move.stage, ", ".join(move.targets), *_remarks(move)]
        for move in moves[:MOST_MOVES]
    ]
    return {"columns": ["primitive", "stage", "on", *columns], "rows": rows}


def _remarks(move: Move) -> list[Cell]:
    chosen = ", ".join(map(str, move.domains))
    match move.verdict:
        case Illegal(kind=kind, reason=reason, hint=hint):
            return [f"{reason} ({kind})", hint or ""]
        case Pending(obligation=obligation):
            return [chosen, obligation]
        case _:
            return [chosen, ""]
