"""What the Explorer does without a front end: intents in, view models out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dlcompiler.errors import DLCompilerError, ScheduleError
from dlcompiler.ir import PrimFunc
from dlcompiler.pipeline import lower
from dlcompiler.schedule import Node, Schedule, Step
from dlcompiler.schedule.trace import decode
from dlcompiler.target import Target
from dlcompiler.te import Tensor
from dlcompiler.views import LoopTree, Program, history_tree, loop_tree, palette, program

Json = dict[str, Any]
Mode = Literal["loops", "final"]

MODES: dict[str, str] = {
    "loops": "loops as scheduled",
    "final": "after all passes",
}
_REMEMBERED_PROGRAMS = 64


@dataclass(frozen=True)
class Status:
    """What came of the last action, in words."""

    text: str
    tone: Literal["info", "error"] = "info"
    details: tuple[tuple[str, str], ...] = ()
    """Further lines, each with its label: got, because, hint."""

    def to_json(self) -> Json:
        """Return it for the front end."""
        return {"text": self.text, "tone": self.tone, "details": [list(d) for d in self.details]}


class Session:
    """A schedule being explored: which loop is chosen, what is shown, what happened last.

    Not thread-safe by itself: its owner holds ``schedule.lock`` round each call.
    """

    def __init__(
        self, schedule: Schedule, args: Sequence[Tensor], target: Target, name: str
    ) -> None:
        self.schedule = schedule
        self.args = tuple(args)
        self.target = target
        self.name = name
        self.mode: Mode = "loops"
        self.chosen: str | None = None
        self.status = Status("Choose a loop by a click, or with the arrow keys in the loop nest.")
        self._chosen_in: dict[str, str | None] = {}
        self._programs: OrderedDict[tuple[str, Mode], PrimFunc | DLCompilerError] = OrderedDict()
        self._seen = schedule.node
        self.tree: LoopTree
        self.refresh()

    # -- intents ---------------------------------------------------------------------------------

    def handle(self, op: str, args: Mapping[str, Any]) -> bool:
        """Do what the user asked for.

        Parameters
        ----------
        op
            ``choose``, ``apply``, ``undo``, ``redo``, ``jump`` or ``mode``.
        args
            What it needs; comes from a browser, so anything.

        Returns
        -------
        bool
            Whether it was done; if not, `status` says why.
        """
        actions = {
            "choose": self.choose,
            "apply": self.apply,
            "undo": self.undo,
            "redo": self.redo,
            "jump": self.jump,
            "mode": self.set_mode,
        }
        if op not in actions:
            self.status = Status(f"unknown request {op!r}", "error")
            return False
        try:
            actions[op](args)
        except DLCompilerError as error:
            self.status = status_of(error)
            return False
        return True

    def choose(self, args: Mapping[str, Any]) -> None:
        """Choose a loop or a stage by its ``key``."""
        row = next((row for row in self.tree["rows"] if row["key"] == args.get("key")), None)
        if row is None or row["type"] == "statement":
            raise ScheduleError("choose a loop", "there is no such loop now", got=args.get("key"))
        self.chosen = self._chosen_in[self.schedule.node.id] = row["key"]
        self.status = Status(row["label"])

    def apply(self, args: Mapping[str, Any]) -> None:
        """Apply a ``step``, given as data: primitive, stage, args."""
        step = _step(args.get("step"))
        self.schedule.apply(step.primitive, step.stage, decode(self.schedule.state, step))
        self.follow(f"{self.schedule.node.title()}: done.")

    def undo(self, args: Mapping[str, Any]) -> None:
        """Go back one step."""
        undone = self.schedule.node.title()
        self.schedule.undo()
        self.follow(f"Undone: {undone}.")

    def redo(self, args: Mapping[str, Any]) -> None:
        """Go forward again."""
        self.schedule.redo()
        self.follow(f"Redone: {self.schedule.node.title()}.")

    def jump(self, args: Mapping[str, Any]) -> None:
        """Go to the state with an ``id``."""
        self.schedule.jump(str(args.get("id")))
        self.follow(f"Now at: {self.schedule.node.title()}.")

    def set_mode(self, args: Mapping[str, Any]) -> None:
        """Show the program in a ``mode`` of `MODES`."""
        mode = args.get("mode")
        if mode not in MODES:
            raise ScheduleError("show the program", "no such view", got=mode)
        self.mode = mode
        self.status = Status(f"Program: {MODES[mode]}.")

    def follow(self, text: str = "") -> None:
        """Take over where the schedule is now, and say what happened."""
        if not text:
            text = f"Elsewhere: {self.schedule.node.title()}."
        owed = self.schedule.obligations
        details = tuple(("owed", str(item)) for item in owed)
        self.status = Status(text, "info", details)
        self.refresh()

    def refresh(self) -> None:
        """Draw the tree anew, and keep as much of the choice as there still is."""
        before = self.chosen
        old = {row["key"] for row in self.tree["rows"]} if hasattr(self, "tree") else set()
        self.tree = loop_tree(self.schedule)
        keys = [row["key"] for row in self.tree["rows"] if row["type"] == "loop"]
        remembered = self._chosen_in.get(self.schedule.node.id)
        self.chosen = remembered or _next_choice(before, old, keys)
        self._chosen_in[self.schedule.node.id] = self.chosen

    # -- view models -----------------------------------------------------------------------------

    def view(self) -> Json:
        """Return everything that is shown."""
        node, following = self.schedule.node, self.schedule.next_node
        return {
            "name": self.name,
            "target": self.target.name,
            "steps": len(self.schedule.trace),
            "undo": node.title() if node.parent else None,
            "redo": following.title() if following else None,
            "tree": self.tree,
            "chosen": self.chosen,
            "palette": palette(self.schedule, self.chosen),
            "program": self.program(),
            "modes": [{"mode": mode, "text": text} for mode, text in MODES.items()],
            "history": history_tree(self.schedule.history),
            "known": [f"{kind} {value}" for kind, value in node.notes.items()],
            "python": self.schedule.trace.to_python(),
            "status": self.status.to_json(),
        }

    def program(self) -> Json:
        """Return the lowered program, compared with the one before the last step."""
        node = self.schedule.node
        shown = self.lowered(node)
        head: Json = {"mode": self.mode, "step": node.title() if node.parent else None}
        if isinstance(shown, DLCompilerError):
            return {**head, **_no_program(self.name), "error": status_of(shown).to_json()}
        before = self.lowered(node.parent) if node.parent else None
        view = program(shown, before if isinstance(before, PrimFunc) else None)
        return {**head, **view, "error": None}

    def lowered(self, node: Node) -> PrimFunc | DLCompilerError:
        """Return the program of a state, or why it has none."""
        key = (node.id, self.mode)
        if key in self._programs:
            self._programs.move_to_end(key)
            return self._programs[key]
        there = self.schedule.fork("shown")
        there.jump(node.id)
        try:
            result: PrimFunc | DLCompilerError = lower(
                there,
                self.args,
                name=self.name,
                kind=self.target.kind,
                simple_mode=self.mode == "loops",
            )
        except DLCompilerError as error:
            result = error
        self._programs[key] = result
        if len(self._programs) > _REMEMBERED_PROGRAMS:
            self._programs.popitem(last=False)
        return result


def _no_program(name: str) -> Program:
    return {"name": name, "lines": [], "added": 0, "removed": 0, "left_out": 0}


def _step(data: Any) -> Step:
    """Return a step that came from a browser; what it says is checked by `decode`."""
    match data:
        case {"primitive": str(name), "stage": str(stage), "args": dict(args)}:
            return Step(name, stage, args)
    raise ScheduleError("apply a step", "the step is malformed", got=repr(data))


def _next_choice(before: str | None, old: set[str], keys: Sequence[str]) -> str | None:
    """Return the loop to choose in a new tree: the same, or what became of it, or a new one."""
    new = [key for key in keys if key not in old]
    candidates = [*(new if old else ()), *keys]
    if before is not None:
        parent = before.removesuffix(".inner").removesuffix(".outer")
        candidates = [before, f"{before}.inner", parent, *candidates]
    return next((key for key in candidates if key in keys), None)


def status_of(error: DLCompilerError) -> Status:
    """Return what an error says, in its parts."""
    details = tuple((label, str(value)) for label, value in error.parts() if value is not None)
    return Status(f"{error.operation}: {error.problem}", "error", details)
