"""The state of a workbench, and the requests that change it; needs no front end."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from dlcompiler.autotune import RecordStore
from dlcompiler.errors import DLCompilerError, ScheduleError
from dlcompiler.ir import PrimFunc
from dlcompiler.pipeline import lower
from dlcompiler.schedule import Illegal, Node, Schedule, create_schedule
from dlcompiler.schedule.trace import decode
from dlcompiler.target import Target
from dlcompiler.te import Tensor
from dlcompiler.te.notation.program import Program
from dlcompiler.views import LoopTree, Palette, loop_tree
from dlcompiler.views.loops.loop_tree import LINES
from dlcompiler.views.loops.strides import with_strides
from dlcompiler.views.moves.effect import why_without_effect
from dlcompiler_widgets.explorer import best_known, branches, exports, moving
from dlcompiler_widgets.explorer.accelerators import Accelerators
from dlcompiler_widgets.explorer.blocks import Blocks
from dlcompiler_widgets.explorer.caches import Caches
from dlcompiler_widgets.explorer.code_tabs import CodeTabs
from dlcompiler_widgets.explorer.exporting import Exporting
from dlcompiler_widgets.explorer.kernels import Kernels
from dlcompiler_widgets.explorer.learner import ACTIONS as PREDICTING
from dlcompiler_widgets.explorer.learner import Learner
from dlcompiler_widgets.explorer.levels import Layout
from dlcompiler_widgets.explorer.machine import Machine, measure_again
from dlcompiler_widgets.explorer.pass_browser import PassBrowser
from dlcompiler_widgets.explorer.pictures import PICTURES, Picture, pictures_of, why_no_picture
from dlcompiler_widgets.explorer.predictions import Predictions
from dlcompiler_widgets.explorer.remembered import Remembered
from dlcompiler_widgets.explorer.status import Status, status_of
from dlcompiler_widgets.explorer.targets import Places
from dlcompiler_widgets.explorer.texts import FIRST, TEXTS, Text, tabs_of, why_no_text

Mode = Literal["loops", "final"]

_REMEMBERED_PROGRAMS = 64
_REMEMBERED_TEXTS = 64


class Session:
    """The state of a workbench: the schedule, the chosen loop, the open tabs and the status.

    It is not thread-safe: the caller must hold ``schedule.lock`` during each call.
    """

    def __init__(
        self, schedule: Schedule, args: Sequence[Tensor], target: Target, name: str
    ) -> None:
        self.schedule = schedule
        self.args = tuple(args)
        self.target = target
        self.name = name
        self.db: str | Path | RecordStore = ":memory:"
        """The records of tuning runs that the best known schedules are taken from."""
        self.tabs = {"picture": next(iter(PICTURES)), "text": FIRST}
        self.only_tabs: Mapping[str, Sequence[str]] = {}
        """For each pane, the only tabs that the widget shows; a pane that is absent shows all."""
        self.chosen: str | None = None
        self.layout = Layout()
        self.preview: dict[str, Any] = {}
        """What the move under the pointer would do, as `dlcompiler.views.moves.preview` says it."""
        self.previews: dict[str, dict[str, Any]] = {}
        """Former answers, by state and move."""
        self.palettes: dict[tuple[str, str | None, str], Palette] = {}
        self.compared: dict[str, str] = {}
        """Ids of the states that are compared: ``a``, ``b``, or one of them so far."""
        self.exported: dict[str, Any] = {}
        """What the export pane shows; replaced as a whole, never changed in parts."""
        self.exporting = Exporting()
        self.exports_made = 0
        """Number of exports that were asked for: the id of the last one."""
        self.texts: Remembered[tuple[str, str], dict[str, Any]] = Remembered(_REMEMBERED_TEXTS)
        """By name of the tab and id of the state."""
        self.writing: dict[str, Any] = {}
        """What the editor of the expression shows."""
        self.former: tuple[Session, ...] = ()
        """The closed sessions of earlier expressions, to which the editor can return."""
        self.code: CodeTabs = CodeTabs()
        self.pass_browser: PassBrowser = PassBrowser()
        self.blocks: Blocks = Blocks()
        self.caches: Caches = Caches()
        self.kernels: Kernels = Kernels()
        self.accelerators: Accelerators = Accelerators()
        self.predictions: Predictions = Predictions()
        self.machine: Machine = Machine()
        """The ceilings of the machine; the widget puts its own here, which measures them."""
        self.learner: Learner = Learner()
        self.is_recording = False
        """Whether what is shown is stored for a page without a kernel."""
        self.places = Places()
        """What is known of switches between targets."""
        self.status = Status("")
        self._chosen_in: dict[str, str | None] = {}
        self._programs: OrderedDict[tuple[str, Mode], PrimFunc | DLCompilerError] = OrderedDict()
        self._seen = schedule.node
        self.tree: LoopTree
        self.refresh()

    def another(self, program: Program | None = None, target: Target | None = None) -> Session:
        """Return a session for another program or target, with the tabs and layout of this one.

        Parameters
        ----------
        program
            Its schedule is a new one; without it, the schedule is this one's, at its state.
        target
            The target; without it, this one's.
        """
        schedule = create_schedule(list(program.outputs)) if program else self.schedule
        args = program.args if program else self.args
        made = Session(schedule, args, target or self.target, self.name)
        made.tabs, made.layout = dict(self.tabs), self.layout
        made.only_tabs, made.db, made.machine = self.only_tabs, self.db, self.machine
        made.learner.is_on = self.learner.is_on
        if program is None:
            made.compared, made.places = dict(self.compared), self.places
            made.former = self.former
            made._chosen_in = {**self._chosen_in, **made._chosen_in}
            if self.chosen in {row["key"] for row in made.tree["rows"]}:
                made.chosen = self.chosen
            made.learner = self.learner
        return made

    def close(self) -> None:
        """End the background work."""
        self.code.compiling.close()
        self.blocks.close()
        self.exporting.close()
        self.caches.close()
        self.kernels.close()
        self.accelerators.close()
        self.predictions.close()

    def wait_for_pictures(self, timeout_s: float | None = None) -> bool:
        """Wait for the pictures that are made in the background; False if that takes too long."""
        makers = (self.blocks, self.caches, self.kernels, self.accelerators)
        return all(each.wait(timeout_s) for each in makers)

    # -- intents ---------------------------------------------------------------------------------

    def handle(self, op: str, args: Mapping[str, Any]) -> bool:
        """Serve a request of the user.

        Parameters
        ----------
        op
            ``choose``, ``apply``, ``undo``, ``redo``, ``jump``, ``picture``, ``text``,
            ``pass``, ``block``, ``cycles``, ``describe``, ``compare``, ``export``, or one of the
            ``ACTIONS`` of `moving` and `best_known`.
        args
            What it needs; comes from a browser, so anything.

        Returns
        -------
        bool
            Whether it was done; if not, `status` says why.
        """
        actions: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "choose": self.choose,
            "apply": self.apply,
            "undo": self.undo,
            "redo": self.redo,
            "jump": self.jump,
            "picture": self.open_picture,
            "text": self.open_text,
            "pass": partial(self.pass_browser.open, self),
            "block": partial(self.blocks.open, self),
            "cycles": partial(self.accelerators.open, self),
            "describe": partial(branches.describe, self),
            "compare": partial(branches.compare, self),
            "export": partial(exports.export, self),
            "machine": partial(measure_again, self),
            **{name: partial(action, self) for name, action in PREDICTING.items()},
            **{name: partial(action, self) for name, action in moving.ACTIONS.items()},
            **{name: partial(action, self) for name, action in best_known.ACTIONS.items()},
        }
        if op not in actions:
            self.status = Status(f"unknown request {op!r}", "error")
            return False
        try:
            if not self.learner.asks(self, op, args):
                actions[op](args)
        except DLCompilerError as error:
            self.status = status_of(error)
            return False
        return True

    def choose(self, args: Mapping[str, Any]) -> None:
        """Choose a loop or a stage by its ``key``."""
        row = next((row for row in self.tree["rows"] if row["key"] == args.get("key")), None)
        if row is None or row["type"] in LINES:
            raise ScheduleError("choose a loop", "there is no such loop now", got=args.get("key"))
        self.chosen = self._chosen_in[self.schedule.node.id] = row["key"]
        made_by = (("made by", row["made_by"]),) if row["made_by"] else ()
        self.status = Status(row["label"], details=made_by)

    def apply(self, args: Mapping[str, Any]) -> None:
        """Apply a ``step``, given as data: primitive, stage, args."""
        step = moving.step_of(args.get("step"), "apply a step")
        values = decode(self.schedule.state, step)
        attempt = self.schedule.attempt(step.primitive, step.stage, values)
        if not isinstance(attempt.verdict, Illegal) and (
            unchanged := why_without_effect(self.schedule, step.primitive, step.stage, values)
        ):
            raise ScheduleError(f"apply {step}", "it would change nothing", because=unchanged)
        self.schedule.apply(step.primitive, step.stage, values)
        self.arrive(f"{self.schedule.node.title()}: done.")

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
        self.follow(f"Now at: {branches.title_of(self.schedule.node)}.")

    def open_picture(self, args: Mapping[str, Any]) -> None:
        """Open a ``tab`` of the pane with pictures."""
        names, tab = self.tabs_shown("picture", pictures_of(self)), args.get("tab")
        if isinstance(tab, str) and tab in PICTURES and tab not in names:
            why = why_no_picture(self, tab)
            if why is not None:
                raise why
        self._open("picture", {name: PICTURES[name] for name in names}, args)

    def missing_picture(self) -> str:
        """Return which open picture has nothing to show, and why; '' if it has."""
        tab = self.tabs["picture"]
        why = None if "picture" in self.only_tabs else why_no_picture(self, tab)
        return f"{PICTURES[tab].title}: {why.because}" if why is not None else ""

    def open_text(self, args: Mapping[str, Any]) -> None:
        """Open a ``tab`` of `texts.tabs_of` that the level shows."""
        tabs, tab = tabs_of(self.target), args.get("tab")
        if isinstance(tab, str) and tab in TEXTS and tab not in tabs:
            raise why_no_text(tab, self.target)
        self._open("text", {name: tabs[name] for name in self.layout.texts(tabs)}, args)

    def _open(self, pane: str, tabs: Mapping[str, Picture | Text], args: Mapping[str, Any]) -> None:
        tab = args.get("tab")
        if not isinstance(tab, str) or tab not in tabs:
            raise ScheduleError(f"show a {pane}", "there is no such tab", got=repr(tab))
        self.tabs[pane] = tab
        self.status = Status(f"Shown: {tabs[tab].title}.")

    def tabs_shown(self, pane: str, offered: Iterable[str]) -> list[str]:
        """Return the tabs of `offered` that the widget shows; if there are none, all its own tabs.

        For example, `ThreadBlock` shows its only tab even for a CPU; the tab then says why it is
        empty.
        """
        only = self.only_tabs.get(pane)
        if only is None:
            return list(offered)
        return [name for name in offered if name in only] or list(only)

    def follow(self, text: str = "") -> None:
        """Show the current state of the schedule, and set the status to `text`."""
        if not text:
            here = branches.title_of(self.schedule.node)
            text = f"Changed in another cell or view: now at {here}."
        details = tuple(("pending", str(item)) for item in self.schedule.obligations)
        self.status = Status(text, "info", details)
        self.refresh()

    def arrive(self, text: str) -> None:
        """Show the state that a step led to; the chosen loop stays chosen in a known state, too."""
        self._chosen_in.pop(self.schedule.node.id, None)
        self.follow(text)

    def refresh(self) -> None:
        """Compute the loop tree again; keep the chosen loop if it still exists."""
        self.caches.leave(self.schedule.node.id)
        self.forget_export()
        before = self.chosen
        self.preview = {}
        old = {row["key"] for row in self.tree["rows"]} if hasattr(self, "tree") else set()
        self.tree = with_strides(loop_tree(self.schedule), self.schedule, self.args, self.target)
        keys = [row["key"] for row in self.tree["rows"] if row["type"] == "loop"]
        remembered = self._chosen_in.get(self.schedule.node.id)
        self.chosen = remembered or _next_choice(before, old, keys)
        self._chosen_in[self.schedule.node.id] = self.chosen

    def forget_export(self) -> None:
        """Close an export of a state that is not the current one any more, or has changed.

        A replay page stays: it is about all states that were visited when it was asked for.
        """
        if self.exported.get("kind") != exports.REPLAY:
            self.exported = {}

    def lowered(self, node: Node, mode: Mode) -> PrimFunc | DLCompilerError:
        """Return the lowered program of a state, or the error of lowering."""
        key = (node.id, mode)
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
                target=self.target,
                simple_mode=mode == "loops",
            )
        except DLCompilerError as error:
            result = error
        self._programs[key] = result
        if len(self._programs) > _REMEMBERED_PROGRAMS:
            self._programs.popitem(last=False)
        return result


def _next_choice(before: str | None, old: set[str], keys: Sequence[str]) -> str | None:
    """Return the loop to choose after a step: the same loop, its child or parent, or a new one."""
    new = [key for key in keys if key not in old]
    candidates = [*(new if old else ()), *keys]
    if before is not None:
        parent = before.removesuffix(".inner").removesuffix(".outer")
        candidates = [before, f"{before}.inner", parent, *candidates]
    return next((key for key in candidates if key in keys), None)
