"""The workbench as a widget: traits and callbacks; `session` handles the requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets

from dlcompiler.autotune import RecordStore
from dlcompiler.errors import DLCompilerError
from dlcompiler.schedule import Node, Schedule
from dlcompiler.target import Target, resolve
from dlcompiler.te import Tensor
from dlcompiler.views import loop_table
from dlcompiler.views.render.markup import Markup
from dlcompiler.views.render.scene import Scene
from dlcompiler_widgets.assets import WORKBENCH_SHEETS, module, styles
from dlcompiler_widgets.explorer.branches import states_of, title_of
from dlcompiler_widgets.explorer.control import Control
from dlcompiler_widgets.explorer.exporting import Job
from dlcompiler_widgets.explorer.exports import show_job
from dlcompiler_widgets.explorer.inputs import parameters_of, schedule_of
from dlcompiler_widgets.explorer.levels import Layout, known_level
from dlcompiler_widgets.explorer.machine import Machine
from dlcompiler_widgets.explorer.measuring import Measuring, Result, Stopwatch, WorkerStopwatch
from dlcompiler_widgets.explorer.noting import noted
from dlcompiler_widgets.explorer.pictures import PICTURES, still
from dlcompiler_widgets.explorer.session import Session
from dlcompiler_widgets.explorer.snapshot import PANES, layout_of, snapshot
from dlcompiler_widgets.explorer.status import Status, status_of, status_of_bug
from dlcompiler_widgets.explorer.targets import retarget, why_not_measured
from dlcompiler_widgets.explorer.views import Views
from dlcompiler_widgets.explorer.writing import write
from dlcompiler_widgets.static_output import StaticOutput, static_page

TURNS = {"write": write, "target": retarget}
"""What may lead to another session."""
SMALL_REQUESTS = ("preview",)
"""Requests that change no pane: only what they ask for is sent."""


class Workbench(StaticOutput, anywidget.AnyWidget):
    """Base of the Explorer and its panes: shows a schedule, and serves the user's requests.

    Parameters
    ----------
    schedule : Schedule or Tensor
        The schedule; for one or more tensors, a new schedule without steps.
    args : sequence of Tensor, optional
        Parameters of the function to show: inputs first, outputs last. By default, all inputs and
        outputs of the schedule.
    target : str or Target
        What to compile for.
    name : str
        Name of the function.
    stopwatch : Stopwatch, optional
        What measures; by default, a worker process.
    level : str
        How much is shown: ``learn``, ``work`` or ``all`` (`explorer.levels`).
    db : path or RecordStore
        The records of tuning runs, for the best known schedules that advice offers.
    predict : bool
        Whether each step asks first what it will do, and reveals it afterwards.
    """

    _esm = module("workbench")
    _css = styles(*WORKBENCH_SHEETS)

    shown_panes: ClassVar[tuple[str, ...]] = ()
    """The panes of this widget, in the order of the page."""
    shown_tabs: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The tabs of a pane, the open one first; all of them for a pane that is not named."""
    first_words: ClassVar[str] = (
        "Choose a loop by a click, or with the arrow keys in the loop nest."
    )
    """What the status line says before anything was done."""

    layout_of_panes = traitlets.Dict().tag(sync=True)
    """``panes``: which there are, and the place of each; ``visible``: which are shown now."""
    bar = traitlets.Dict().tag(sync=True)
    tree = traitlets.Dict().tag(sync=True)
    picture = traitlets.Dict().tag(sync=True)
    text = traitlets.Dict().tag(sync=True)
    ladder = traitlets.Dict().tag(sync=True)
    moves = traitlets.Dict().tag(sync=True)
    history = traitlets.Dict().tag(sync=True)
    advice = traitlets.Dict().tag(sync=True)
    compare = traitlets.Dict().tag(sync=True)
    export = traitlets.Dict().tag(sync=True)
    editor = traitlets.Dict().tag(sync=True)
    preview = traitlets.Dict().tag(sync=True)
    """What the move under the pointer would do; empty when none was asked for in this state."""
    status = traitlets.Dict().tag(sync=True)
    chosen = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    """Key of the chosen loop, as in the loop tree."""
    reply = traitlets.Dict().tag(sync=True)
    """``seq`` grows with each answer, ``id`` is that of the request, or None when nobody asked, and
    ``last`` that of the newest answered one; set with the panes at once."""
    intent = traitlets.Dict().tag(sync=True)
    """What the user asked for: ``{"id", "op", "args"}``."""
    control = traitlets.Unicode("").tag(sync=True)
    """The model that takes what must be served while a cell is busy, by its id."""
    last_latency_ms = traitlets.Float(0.0).tag(sync=True)
    """Time from the last click to the redrawn page, by the page's clock; [ms]."""

    def __init__(
        self,
        schedule: Schedule | Tensor | Sequence[Tensor],
        args: Sequence[Tensor] | None = None,
        target: str | Target = "cpu",
        *,
        name: str = "main",
        stopwatch: Stopwatch | None = None,
        level: str = "work",
        db: str | Path | RecordStore = ":memory:",
        predict: bool = False,
    ) -> None:
        schedule = schedule_of(schedule)
        if args is None:
            args = parameters_of(schedule)
        self._session = Session(schedule, args, resolve(target), name)
        self._session.db = db
        self._session.status = Status(self.first_words)
        self._session.tabs |= {pane: names[0] for pane, names in self.shown_tabs.items()}
        self._session.only_tabs = self.shown_tabs
        # The tabs of a single pane are there at every level.
        known = known_level(level)
        self._session.layout = Layout("all" if self.shown_tabs else known)
        self._stopwatch = stopwatch or WorkerStopwatch()
        self._owns_stopwatch = stopwatch is None
        self._measuring = Measuring(self._stopwatch, self._on_measured)
        self._session.machine = Machine(getattr(self._stopwatch, "ceilings", None))
        self._private: dict[str, Any] = {}
        """Contents of the panes that go to the page as messages: no host saves these."""
        if predict:
            self._session.handle("predicting", {"on": True})
        self._is_handling = False
        self._views = Views()
        self._seq = 0
        self._answered: Any = None
        self._control = Control(self._measuring.cancel)
        super().__init__(control=self._control.model_id)
        with self._locked():
            # First: what the contents ask for may be ready at once; it waits for the lock.
            self._listen(self._session)
            self._push(None)
        schedule.listeners.append(self._on_step)
        self.observe(self._on_intent, names="intent")
        self.on_msg(self._on_message)

    @property
    def schedule(self) -> Schedule:
        """The schedule that is shown and edited."""
        return self._session.schedule

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the shown schedule.

        The lock belongs to the history. A cell that applies a step holds it while it calls the
        listener. While this thread waits, the widget may switch to another schedule.
        """
        while True:
            lock = self.schedule.lock
            with lock:
                if lock is self.schedule.lock:
                    yield
                    return

    def _turn_to(self, session: Session) -> None:
        """Switch to another session: another schedule, or the same schedule for another target."""
        before, self._session = self._session, session
        if self._on_step in before.schedule.listeners:
            before.schedule.listeners.remove(self._on_step)
        before.close()
        self._measuring.cancel()
        session.schedule.listeners.append(self._on_step)
        self._listen(session)

    def _listen(self, session: Session) -> None:
        """Register callbacks that show background results of a session when they are ready."""
        session.code.compiling.on_ready = partial(self._on_ready, "text")
        session.blocks.on_ready = partial(self._on_ready, "picture")
        session.machine.on_ready = partial(self._on_ready, "picture", "ladder", "advice")
        session.caches.on_ready = partial(self._on_ready, "picture")
        session.predictions.on_ready = partial(self._on_ready, "history")
        session.accelerators.on_ready = partial(self._on_ready, "picture")
        session.kernels.on_ready = partial(self._on_ready, "picture", "advice", "history")
        session.exporting.on_change = partial(self._on_export, session)

    def close(self) -> None:
        """Stop following the schedule, and close the widget."""
        if hasattr(self, "_control"):  # not one whose construction was refused
            if self._on_step in self.schedule.listeners:
                self.schedule.listeners.remove(self._on_step)
            self._measuring.cancel()
            self._control.close()
            self._session.machine.close()
            if self._owns_stopwatch and isinstance(self._stopwatch, WorkerStopwatch):
                self._stopwatch.close()
            self._session.close()
        super().close()

    def _on_message(self, widget: Any, content: Any, buffers: Any) -> None:
        """Count the views, and send what a new one has missed."""
        with self._locked():
            if self._views.note(content):
                self._push(None)
            for pane, value in self._private.items():
                self.send({"pane": pane, "value": value})

    def _on_intent(self, change: Any) -> None:
        # May run on any thread, also while a cell runs.
        intent = change["new"]
        if not intent:
            return  # forgotten, below
        op, args = str(intent.get("op")), intent.get("args")
        try:
            with self._locked():
                self._is_handling = True
                try:
                    self._handle(op, args if isinstance(args, dict) else {})
                except Exception as error:
                    # A bug: the page says so, and the traceback goes where the host shows it.
                    self._session.status = status_of_bug(op, error)
                    raise
                finally:
                    self._is_handling = False
        finally:
            # Locked again: the request may have led to another schedule, with another lock.
            with self._locked(), self.hold_sync():
                if op == "answer":
                    self.intent = {}  # the learner's own: not saved with the notebook
                self._push(intent.get("id"), () if op in SMALL_REQUESTS else None)

    def _handle(self, op: str, args: dict[str, Any]) -> None:
        session = self._session
        if op == "measure":
            self._measure(args)
        elif op == "cancel":
            self._measuring.cancel()
            session.status = Status("Cancelling …")
        elif op in TURNS:
            self._turn(op, args)
        else:
            session.handle(op, args)

    def _measure(self, args: dict[str, Any]) -> None:
        """Start a run for the current state, or for the ``states`` that are named."""
        session = self._session
        if why := why_not_measured(session):
            session.status = Status(f"Not measured: {why}", "error")
            return
        try:
            schedules = states_of(session, args)
        except DLCompilerError as error:
            session.status = status_of(error)
            return
        is_begun = self._measuring.start_all(schedules, session.args, session.target, session.name)
        titles = ", then ".join(title_of(schedule.node) for schedule in schedules)
        session.status = Status(
            f"Verifying each step up to {titles}, then measuring …"
            if is_begun
            else "A run is in progress already."
        )

    def _turn(self, op: str, args: dict[str, Any]) -> None:
        try:
            session = TURNS[op](self._session, args)
        except DLCompilerError as error:
            self._session.status = status_of(error)
            return
        if session is not None:
            self._turn_to(session)

    def _on_measured(self, node: Node, result: Result, target: str) -> None:
        """Store and show a result of a run; called from the thread of the run."""
        with self._locked():
            self._session.forget_export()
            self._session.status = noted(node, result, target)
            self._push(None)

    def _on_ready(self, *panes: str) -> None:
        """Update panes whose background result is ready; called from the background thread."""
        with self._locked():
            visible = layout_of(self._session, self.shown_panes)["visible"]
            if shown := [pane for pane in panes if pane in visible]:
                self._push(None, shown)

    def _on_export(self, session: Session, job: Job) -> None:
        """Show how far an export is; called from the thread that makes it."""
        with self._locked():
            if session is self._session and job is session.exporting.job and show_job(session):
                self._push(None, ("export",))

    def _on_step(self, schedule: Schedule) -> None:
        """Show a step that was applied elsewhere, such as in another cell."""
        with self._locked():
            if not self._is_handling and schedule is self.schedule:
                self._session.follow()
                if self._views.may_skip():
                    self.static_changed()  # The view can be gone while its picture is there.
                    return
                self._push(None)

    def _push(self, reply: Any, panes: Iterable[str] | None = None) -> None:
        self._seq += 1
        with self.hold_sync():
            for name, value in self._shown(panes).items():
                if name in PANES and PANES[name].is_private:
                    self._tell(name, value)
                else:
                    setattr(self, name, value)
            self._answered = reply or self._answered
            self.reply = {"seq": self._seq, "id": reply, "last": self._answered}
        if panes != ():
            self.static_changed()

    def _tell(self, pane: str, value: dict[str, Any]) -> None:
        """Send the contents of a pane as a message, if they changed."""
        if self._private.get(pane) != value:
            self._private[pane] = value
            self.send({"pane": pane, "value": value})

    def _shown(self, panes: Iterable[str] | None = None) -> dict[str, Any]:
        """Return the values of the traits that the page draws, for all panes or the given ones."""
        layout = layout_of(self._session, self.shown_panes)
        shown = snapshot(self._session, layout["visible"] if panes is None else panes)
        shown["layout_of_panes"] = layout
        measuring = {"state": self._measuring.state, "doing": self._measuring.doing}
        for pane in ("bar", "compare", "predict"):
            if shown.get(pane):
                shown[pane]["measuring"] = measuring
        return shown

    def _catch_up(self) -> None:
        """Draw what was skipped while no page showed the widget."""
        with self._locked():
            if self._views.is_behind():
                self._push(None)

    @property
    def view(self) -> dict[str, Any]:
        """The contents of all panes, with ``chosen``, ``status`` and ``reply``; JSON-able."""
        self._catch_up()
        names = (*self.shown_panes, "chosen", "status", "reply")
        return {name: self._private.get(name) or getattr(self, name, {}) for name in names}

    # -- without a front end -----------------------------------------------------------------------

    def __repr__(self) -> str:
        session, steps = self._session, len(self.schedule.trace)
        return (
            f"{type(self).__name__}({session.name} on {session.target.name}: "
            f"{session.tree['summary']}; {steps} step{'s' * (steps != 1)})"
        )

    def static_text(self) -> str:
        """Return the text that a terminal shows."""
        return f"{self!r}\n{loop_table(self.schedule)}"

    def static_html(self) -> str:
        """Return the HTML that is shown where no front end runs the widget; it has no script."""
        self._catch_up()
        with self._locked():
            parts = self.static_parts()
            return str(static_page(repr(self), parts, self.static_text))

    def static_parts(self) -> dict[str, Markup]:
        """Return the fragments of the static picture by name, the most important one first."""
        raise NotImplementedError

    def still(self, name: str) -> Scene | DLCompilerError:
        """Return a picture that stands still; what the page shows is not computed again."""
        is_shown = "picture" in self.layout_of_panes["visible"] and self.picture.get("tab") == name
        model = self.picture.get("model") if is_shown else None
        if not model or model.get("is_pending"):
            return still(self._session, name)
        return PICTURES[name].still(model)
