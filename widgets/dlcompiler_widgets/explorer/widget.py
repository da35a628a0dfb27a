"""The Explorer widget: traits and callbacks. What they mean is in `session`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from dlcompiler.errors import DLCompilerError
from dlcompiler.runtime.timing import Timing
from dlcompiler.schedule import Node, Schedule
from dlcompiler.target import Target, resolve
from dlcompiler.te import Tensor
from dlcompiler.views import loop_table
from dlcompiler.views.html import history_html, program_html, tree_html
from dlcompiler.views.markup import join, tag
from dlcompiler_widgets.explorer.measuring import Measuring, Stopwatch, WorkerStopwatch, describe
from dlcompiler_widgets.explorer.session import Session, Status, status_of

_HERE = Path(__file__).parent
_LARGEST_FALLBACK_BYTES = 60_000


class Explorer(anywidget.AnyWidget):
    """A schedule that can be clicked: its loop nest, what may be done next, and what that changes.

    It edits the schedule it is given. Steps made elsewhere, in another cell, show up in it.

    Parameters
    ----------
    schedule : Schedule
        The schedule.
    args : sequence of Tensor
        Parameters of the function to show: inputs first, outputs last.
    target : str or Target
        What to compile for.
    name : str
        Name of the function.
    stopwatch : Stopwatch, optional
        What measures; by default, a worker process.

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.schedule import create_schedule
    >>> A = te.placeholder((64, 64), name="A")
    >>> B = te.compute((64, 64), lambda i, j: A[j, i], name="B")
    >>> Explorer(create_schedule(B.op), [A, B])
    Explorer(main on cpu: 1 stage, 2 loops; 0 steps)
    """

    _esm = _HERE / "index.js"
    _css = _HERE / "style.css"

    view = traitlets.Dict().tag(sync=True)
    """All that is shown, replaced as a whole: ``seq`` grows, ``reply`` names the intent."""
    intent = traitlets.Dict().tag(sync=True)
    """What the user asked for: ``{"id", "op", "args"}``."""
    last_latency_ms = traitlets.Float(0.0).tag(sync=True)
    """Time from the last click to the redrawn page, by the page's clock; [ms]."""

    def __init__(
        self,
        schedule: Schedule,
        args: Sequence[Tensor],
        target: str | Target = "cpu",
        *,
        name: str = "main",
        stopwatch: Stopwatch | None = None,
    ) -> None:
        self._session = Session(schedule, args, resolve(target), name)
        self._measuring = Measuring(stopwatch or WorkerStopwatch(), self._on_measured)
        # The history's own lock: a step of another cell holds it when it calls the listener.
        self._lock = schedule.lock
        self._is_handling = False
        self._seq = 0
        super().__init__()
        with self._lock:
            self._push(None)
        schedule.listeners.append(self._on_step)
        self.observe(self._on_intent, names="intent")

    @property
    def schedule(self) -> Schedule:
        """The schedule that is shown and edited."""
        return self._session.schedule

    def close(self) -> None:
        """Stop following the schedule, and close the widget."""
        if self._on_step in self.schedule.listeners:
            self.schedule.listeners.remove(self._on_step)
        self._measuring.cancel()
        super().close()

    def _on_intent(self, change: Any) -> None:
        # May run on any thread, also while a cell runs.
        intent = change["new"]
        op, args = str(intent.get("op")), intent.get("args")
        with self._lock:
            self._is_handling = True
            try:
                self._handle(op, args if isinstance(args, dict) else {})
            except Exception as error:
                # A bug: the page says so, and the traceback goes where the host shows it.
                self._session.status = Status(f"{op}: {type(error).__name__}: {error}", "error")
                raise
            finally:
                self._is_handling = False
                self._push(intent.get("id"))

    def _handle(self, op: str, args: dict[str, Any]) -> None:
        session = self._session
        if op == "measure":
            begun = self._measuring.start(
                session.schedule, session.args, session.target, session.name
            )
            session.status = Status(
                f"Measuring: {session.schedule.node.title()} …"
                if begun
                else "A measurement is running already."
            )
        elif op == "cancel":
            self._measuring.cancel()
            session.status = Status("Cancelling the measurement …")
        else:
            session.handle(op, args)

    def _on_measured(self, node: Node, result: Timing | Exception | None) -> None:
        """Note what came of a measurement; called from its thread."""
        with self._lock:
            if isinstance(result, Timing):
                node.notes["measured"] = describe(result)
                text = f"Measured: {node.title()}: {describe(result)} (n={result.n})."
                self._session.status = Status(text)
            elif isinstance(result, DLCompilerError):
                self._session.status = status_of(result)
            elif result is not None:
                text = f"measure: {type(result).__name__}: {result}"
                self._session.status = Status(text, "error")
            else:
                self._session.status = Status("The measurement was cancelled.")
            self._push(None)

    def _on_step(self, schedule: Schedule) -> None:
        """Follow a step that was made elsewhere."""
        with self._lock:
            if not self._is_handling:
                self._session.follow()
                self._push(None)

    def _push(self, reply: Any) -> None:
        self._seq += 1
        self.view = {
            **self._session.view(),
            "measuring": {"state": self._measuring.state},
            "seq": self._seq,
            "reply": reply,
        }

    # -- without a front end -----------------------------------------------------------------------

    def __repr__(self) -> str:
        session = self._session
        return (
            f"Explorer({session.name} on {session.target.name}: {session.tree['summary']}; "
            f"{len(self.schedule.trace)} steps)"
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        data, metadata = bundle
        text = f"{self!r}\n{loop_table(self.schedule)}"
        return {**data, "text/plain": text, "text/html": self._static_html()}, metadata

    def _static_html(self) -> str:
        """Return what shows where no front end runs the widget."""
        with self._lock:
            view = self._session.view()
        parts = [tree_html(view["tree"])]
        if view["program"]["error"] is None:
            parts.append(program_html(view["program"]))
        parts.append(history_html(self.schedule.history))
        note = tag("p", None, tag("strong", None, repr(self)), " — run the cell to explore it.")
        whole = str(tag("div", None, note, *parts))
        # A notebook stores this text with every Explorer in it.
        return whole if len(whole.encode()) < _LARGEST_FALLBACK_BYTES else join(note, parts[0])
