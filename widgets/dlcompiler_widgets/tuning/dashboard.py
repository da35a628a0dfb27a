"""The tuning dashboard as a widget: traits and callbacks. `session` implements the actions."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import traitlets

from dlcompiler.autotune import Event, Trial, TuningRun
from dlcompiler.errors import DLCompilerError
from dlcompiler.space import Config
from dlcompiler.views.tuning import tuning_html, watched
from dlcompiler_widgets.assets import TUNING_SHEETS, module, styles
from dlcompiler_widgets.explorer.status import Status, status_of, status_of_bug
from dlcompiler_widgets.routing import OpenWidget
from dlcompiler_widgets.static_output import StaticOutput, static_page
from dlcompiler_widgets.tuning import snapshot
from dlcompiler_widgets.tuning.control import TuningControl
from dlcompiler_widgets.tuning.knowledge import Knowledge
from dlcompiler_widgets.tuning.session import Session, handle
from dlcompiler_widgets.tuning.shipping import Shipment
from dlcompiler_widgets.tuning.throttle import Throttle

PUSH_EVERY_S = (0.15, 0.25)
"""Least time between two pushes [s]; the second one applies when pushes are slow."""
REQUESTS_KNOWN = 100
"""Number of the last requests that are remembered, to ignore one that arrives twice."""
Opener = Callable[[Trial], object]


class TuningDashboard(StaticOutput, OpenWidget):
    """A dashboard of a tuning run: its results, the origin of each trial, and the predictions.

    Long lists are sent as a base and its new items (`shipping`): a page that opens later gets
    everything, an open one only the new items.

    Parameters
    ----------
    run : TuningRun
        The run to show, still running or ended.
    own : Config, optional
        The user's own config, marked in the pictures of the space.
    open_trial : callable, optional
        Called with a trial that shall be opened in the Explorer.
    """

    _esm = module("tuning")
    _css = styles(*TUNING_SHEETS)

    head = traitlets.Dict().tag(sync=True)
    """`dlcompiler.views.tuning.headline`, and which buttons work."""
    progress = traitlets.Dict().tag(sync=True)
    """The best so far: a scene whose marks are packed by `Shipment.pack`."""
    progress_base = traitlets.Dict().tag(sync=True)
    picture = traitlets.Dict().tag(sync=True)
    """The open picture beside it."""
    picture_base = traitlets.Dict().tag(sync=True)
    trials = traitlets.Dict().tag(sync=True)
    """A page of the trials."""
    trials_base = traitlets.Dict().tag(sync=True)
    detail = traitlets.Dict().tag(sync=True)
    """The chosen trial."""
    status = traitlets.Dict().tag(sync=True)
    reply = traitlets.Dict().tag(sync=True)
    """``seq`` grows with each push. ``id`` is that of the request that caused the push, or None.
    ``last`` is that of the newest answered request."""
    intent = traitlets.Dict().tag(sync=True)
    """The user's request, until the `TuningControl` answers: ``{"id", "op", "args"}``."""
    control = traitlets.Unicode("").tag(sync=True)
    """Id of the `TuningControl` model, which receives requests while a cell is running."""

    def __init__(
        self, run: TuningRun, own: Config | None = None, open_trial: Opener | None = None
    ) -> None:
        self.run = run
        """What is shown."""
        self._lock = threading.RLock()
        self._session = Session(run, watched(run))
        self._knowledge = Knowledge(run, own)
        self._open = open_trial
        self._shipments = {name: Shipment() for name in ("progress", "picture", "trials")}
        self._seq = 0
        self._answered: Any = None
        self._recent: deque[Any] = deque(maxlen=REQUESTS_KNOWN)
        self._control = TuningControl(self._on_request)
        super().__init__(control=self._control.model_id)
        self._throttle = Throttle(self._on_tick, *PUSH_EVERY_S)
        self._push(None)
        self.observe(lambda change: self._on_request(change["new"]), names="intent")
        run.listeners.append(self._on_event)
        self._throttle.poke()  # The run may have gone on before the listener was added.

    def close(self) -> None:
        """Stop following the run, and close the widget; the run goes on."""
        if hasattr(self, "_throttle"):
            if self._on_event in self.run.listeners:
                self.run.listeners.remove(self._on_event)
            self._throttle.cancel()
            self._control.close()
        super().close()

    # -- what happens --------------------------------------------------------------------------

    def _on_event(self, event: Event) -> None:
        # Called from the run's thread, which must not be delayed.
        self._throttle.poke()
        self.static_changed()  # Not only after the pause: a cell that waits for the run may end.

    def _on_tick(self) -> None:
        with self._lock:
            self._push(None)

    def _on_request(self, intent: dict[str, Any]) -> None:
        # May run on any thread, also while a cell runs.
        op, args = str(intent.get("op")), intent.get("args")
        with self._lock:
            # A request may arrive on both connections: see `Channel.moveTo` in the page's script.
            is_again = intent.get("id") in self._recent
            self._recent.append(intent.get("id"))
            try:
                if is_again:
                    pass
                elif op == "open":
                    self._open_chosen()
                else:
                    handle(self._session, op, args if isinstance(args, dict) else {})
            except DLCompilerError as error:
                self._say(status_of(error))
            except Exception as error:
                self._say(status_of_bug(op, error))
                raise
            finally:
                self._push(intent.get("id"))

    def _open_chosen(self) -> None:
        session = self._session
        trial = session.trial(session.chosen)
        if trial is None or self._open is None:
            session.say("Choose a trial first." if self._open else "There is no place to open it.")
            return
        self._open(trial)
        session.say(f"Trial {trial.index} is open in the Explorer below.")

    def _say(self, status: Status) -> None:
        self._said = status

    _said: Status | None = None

    # -- what is shown -------------------------------------------------------------------------

    def _push(self, reply: Any) -> None:
        session = self._session
        session.seen = watched(self.run, session.seen)
        session.end_passing()
        shown = {"head": snapshot.head(session), "detail": snapshot.detail(session)}
        shown["detail"]["can_open"] = self._open is not None
        bases = {}
        for name, (frame, items) in self._lists().items():
            shown[name] = {**frame, **self._shipments[name].pack(items)}
            bases[f"{name}_base"] = self._shipments[name].base
        said, self._said = self._said, None
        self._seq += 1
        with self.hold_sync():
            for name, value in {**bases, **shown}.items():
                if getattr(self, name) != value:
                    setattr(self, name, value)
            self.status = (said or Status(session.status)).to_json()
            self._answered = reply or self._answered
            self.reply = {"seq": self._seq, "id": reply, "last": self._answered}
        self.static_changed()

    def _lists(self) -> dict[str, tuple[dict[str, Any], list[Any]]]:
        """Return the parts that contain a long list, each as its other data and the list."""
        curve, scene = snapshot.progress(self._session)
        found = {"progress": _framed(curve, scene)}
        found["picture"] = _framed(*snapshot.picture(self._session, self._knowledge))
        found["trials"] = snapshot.trials(self._session)
        return found

    @property
    def view(self) -> dict[str, Any]:
        """The data of every part, by name; JSON-able."""
        names = ("head", "progress", "picture", "trials", "detail", "status", "reply")
        return {name: getattr(self, name) for name in names}

    # -- without a front end -------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"TuningDashboard({self.run!r})"

    def static_text(self) -> str:
        """Return what `repr` says: the run, and its best."""
        return repr(self)

    def static_html(self) -> str:
        """Return the pictures and the tables of the run, as they are now."""
        return str(static_page(repr(self), {"the run": tuning_html(self.run)}, self.static_text))


def _framed(frame: dict[str, Any], scene: Any) -> tuple[dict[str, Any], list[Any]]:
    """Split a part into its data without the scene's marks, and the list of marks."""
    if scene is None:
        return {**frame, "scene": None}, []
    rest = {name: value for name, value in scene.items() if name != "marks"}
    return {**frame, "scene": rest}, scene["marks"]
