"""The fusion view as a widget: traits and callbacks. `session` implements the actions."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import traitlets

from dlcompiler.errors import DLCompilerError, GraphError
from dlcompiler.views.graphs.fusion_html import fusion_parts
from dlcompiler.views.graphs.fusion_picture import summary
from dlcompiler.views.render.boxes import count
from dlcompiler.views.render.markup import Markup
from dlcompiler_widgets.assets import GRAPH_SHEETS, module, styles
from dlcompiler_widgets.explorer.status import Status, status_of, status_of_bug
from dlcompiler_widgets.graphs import snapshot
from dlcompiler_widgets.graphs.analysis import Source, Wishes
from dlcompiler_widgets.graphs.measuring import Measured, Measuring
from dlcompiler_widgets.graphs.replay import GraphPage, graph_page
from dlcompiler_widgets.graphs.session import Session, handle
from dlcompiler_widgets.routing import OpenWidget
from dlcompiler_widgets.static_output import StaticOutput, static_page
from dlcompiler_widgets.tuning.control import TuningControl

REQUESTS_KNOWN = 100
"""Number of the last requests that are remembered, to ignore one that arrives twice."""


class GraphPanel(StaticOutput, OpenWidget):
    """The graph, its verdicts, the passes, the arena and the times.

    Parameters
    ----------
    source : Source
        The model.
    open_kernel : callable, optional
        Called with the number of a kernel whose schedule shall be opened.
    """

    _esm = module("graph")
    _css = styles(*GRAPH_SHEETS)

    head = traitlets.Dict().tag(sync=True)
    """The title, the numbers, and what the last decision changed."""
    picture = traitlets.Dict().tag(sync=True)
    """`dlcompiler.views.graphs.fusion_picture`: the graph."""
    verdicts = traitlets.Dict().tag(sync=True)
    """All verdicts, as a table and one by one."""
    passes = traitlets.Dict().tag(sync=True)
    arena = traitlets.Dict().tag(sync=True)
    times = traitlets.Dict().tag(sync=True)
    opened = traitlets.Unicode("").tag(sync=True)
    """Key of the kernel whose schedule is open; "" if none is."""
    status = traitlets.Dict().tag(sync=True)
    reply = traitlets.Dict().tag(sync=True)
    """``seq`` grows with each push, ``id`` is that of the request that caused it, or None, and
    ``last`` that of the newest answered one."""
    intent = traitlets.Dict().tag(sync=True)
    """The user's request: ``{"id", "op", "args"}``."""
    control = traitlets.Unicode("").tag(sync=True)
    """Id of the model that receives requests while a cell is running."""

    def __init__(self, source: Source, open_kernel: Callable[[int], object] | None = None) -> None:
        self._lock = threading.RLock()
        self._session = Session(source)
        self._open = open_kernel
        self._measuring = Measuring(self._on_measured)
        self._recent: deque[Any] = deque(maxlen=REQUESTS_KNOWN)
        self._seq = 0
        self._answered: Any = None
        self._control = TuningControl(self._on_request)
        super().__init__(control=self._control.model_id)
        self._push(None)
        self.observe(lambda change: self._on_request(change["new"]), names="intent")

    def close(self) -> None:
        """Stop measuring, and close the widget."""
        if hasattr(self, "_measuring"):
            self._measuring.cancel()
            self._control.close()
        super().close()

    # -- what happens --------------------------------------------------------------------------

    def _on_request(self, intent: dict[str, Any]) -> None:
        # May run on any thread, also while a cell runs.
        op, args = str(intent.get("op")), intent.get("args")
        with self._lock:
            is_again = intent.get("id") in self._recent
            self._recent.append(intent.get("id"))
            said = None
            parts: Iterable[str] | None = () if is_again else None
            try:
                if not is_again:
                    self._handle(op, args if isinstance(args, dict) else {})
            except DLCompilerError as error:
                said, parts = status_of(error), ()
            except Exception as error:
                said, parts = status_of_bug(op, error), ()
                raise
            finally:
                self._push(intent.get("id"), parts, said)

    def _handle(self, op: str, args: dict[str, Any]) -> None:
        session = self._session
        if op == "measure":
            is_begun = self._measuring.start(session.source, session.wishes)
            session.status = "Measuring …" if is_begun else "A measurement is going on already."
        elif op == "cancel":
            self._measuring.cancel()
            session.status = "Stopping: the run that goes on is the last one."
        elif op == "schedule":
            self._open_schedule(args.get("kernel"))
        else:
            handle(session, op, args)

    def _open_schedule(self, number: Any) -> None:
        session = self._session
        if self._open is None:
            raise GraphError("open a schedule", "there is no place to open it")
        if session.at is not None:
            raise GraphError("open a schedule", "kernels are made by the last pass", hint="show it")
        if not isinstance(number, int) or isinstance(number, bool):
            raise GraphError("open a schedule", "there is no such kernel", got=f"{number!r:.80}")
        self._open(number)
        self.opened = f"kernel {number}"
        session.status = "The schedule of the kernel is open in the Explorer below."

    def back(self) -> None:
        """Note that no schedule is open any more."""
        with self._lock:
            self.opened = ""
            self._session.status = "Back at the graph."
            self._push(None, ())

    def _on_measured(self, wishes: Wishes | None, result: Measured | Status | None) -> None:
        """Show how far a measurement is, or its result; called from its thread."""
        with self._lock:
            said = None
            if isinstance(result, Measured) and wishes is not None:
                self._session.measured[wishes] = result
                self._session.status = f"{count(len(result.kernels), 'kernel')}, {result.where}."
            elif isinstance(result, Status):
                said = result
                self._session.status = result.text
            self._push(None, () if result is None else ("verdicts", "times"), said)

    # -- what is shown -------------------------------------------------------------------------

    def _push(
        self, reply: Any, parts: Iterable[str] | None = None, said: Status | None = None
    ) -> None:
        """Send the given parts, or all; those that are the same are not sent."""
        session = self._session
        names = snapshot.PARTS if parts is None else parts
        shown = {name: snapshot.PARTS[name](session) for name in names}
        self._seq += 1
        with self.hold_sync():
            self.head = snapshot.head(session, self._measuring.doing)
            for name, value in shown.items():
                if getattr(self, name) != value:
                    setattr(self, name, value)
            self.status = (said or Status(session.status)).to_json()
            self._answered = reply or self._answered
            self.reply = {"seq": self._seq, "id": reply, "last": self._answered}
        if parts is None or names:
            self.static_changed()

    @property
    def view(self) -> dict[str, Any]:
        """The data of every part, by name; JSON-able."""
        return {name: getattr(self, name) for name in ("head", *snapshot.PARTS, "status", "reply")}

    def page(self, max_bytes: int) -> GraphPage:
        """Return a page that replays the view: see `GraphView.save_html`."""
        with self._lock:
            return graph_page(self._session, max_bytes, list(self.static_parts().values()))

    # -- without a front end -------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"GraphPanel({summary(self._session.found.graph)})"

    def static_text(self) -> str:
        """Return the graph in a sentence."""
        return repr(self)

    def static_html(self) -> str:
        """Return the pictures and the tables, as they are now."""
        return str(static_page(repr(self), self.static_parts(), self.static_text))

    def static_parts(self) -> dict[str, Markup]:
        """Return the fragments of the static picture by name, the most important one first."""
        with self._lock:
            session = self._session
            return fusion_parts(
                session.graph, session.shown, session.found.steps,
                facts=[(label, value) for label, value, _ in self.head["facts"]],
                times=snapshot.times_picture(session),
            )  # fmt: skip
