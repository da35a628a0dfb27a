"""Widgets of a tuning run: the curve that grows, and the button that stops it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import ipywidgets
import traitlets

from dlcompiler.autotune import Event, TuningRun
from dlcompiler.views.tuning import Point, nice_ceiling, points, tuning, tuning_html
from dlcompiler_widgets.tuning.throttle import Throttle

_HERE = Path(__file__).parent
_PUSH_EVERY_S = 0.2
_LARGEST_DELTA = 64


class TuningCurve(anywidget.AnyWidget):
    """The trials of a run as they come, and the best so far.

    The points are ``base`` and those of ``delta`` behind them: only the delta is sent again and
    again, and a page that comes later has all of them.

    Parameters
    ----------
    run : TuningRun
        What to show.
    """

    _esm = _HERE / "curve.js"
    _css = _HERE / "style.css"

    model = traitlets.Dict().tag(sync=True)
    """What `dlcompiler.views.tuning.tuning` returns, and ``top``, the end of the scale."""
    base: traitlets.List[Any] = traitlets.List().tag(sync=True)
    """GFLOP/s of the first trials, null for those that failed."""
    delta = traitlets.Dict().tag(sync=True)
    """``points`` of the trials behind ``base``; ``from`` is the number of the first."""

    def __init__(self, run: TuningRun) -> None:
        super().__init__()
        self.run = run
        """What is shown."""
        self._throttle = Throttle(self._push, _PUSH_EVERY_S)
        self._throttle.flush()
        run.listeners.append(self._on_event)
        self._throttle.poke()  # for what came in between

    def close(self) -> None:
        """Stop following the run, and close the widget."""
        if self._on_event in self.run.listeners:
            self.run.listeners.remove(self._on_event)
        self._throttle.cancel()
        super().close()

    def _on_event(self, event: Event) -> None:
        # Called from the run's thread.
        if event.kind == "ended":
            self._throttle.flush()
        else:
            self._throttle.poke()

    def _push(self) -> None:
        model = tuning(self.run)
        base: list[Point] = self.base
        new = points(self.run, len(base))
        with self.hold_sync():
            if len(new) > _LARGEST_DELTA:
                base = [*base, *new]
                new = []
                self.base = base
            measured = [rate for rate in (*base, *new) if rate is not None]
            self.delta = {"from": len(base), "points": new}
            self.model = {**model, "top": nice_ceiling(max(measured, default=1.0))}

    def __repr__(self) -> str:
        return f"TuningCurve({self.run!r})"


class StopButton(anywidget.AnyWidget):
    """A button that stops a run, also while a cell is busy.

    It is a widget of its own whose comm only answers: a front end's messages to a widget that a
    thread pushes to may be held back until the running cell has ended. For the same reason the page
    says hello a moment after it appeared, and is answered.

    Parameters
    ----------
    run : TuningRun
        What to stop.
    """

    _esm = _HERE / "stop.js"
    _css = _HERE / "style.css"

    asked = traitlets.Int(0).tag(sync=True)
    """How often the button was used."""
    hello = traitlets.Int(0).tag(sync=True)
    """What the page says after it appeared."""
    reply = traitlets.Int(0).tag(sync=True)
    """The hello that was answered."""
    state = traitlets.Unicode("").tag(sync=True)
    """The state of the run when it was last asked for, and when it ended."""

    def __init__(self, run: TuningRun) -> None:
        super().__init__()
        self.run = run
        """What it stops."""
        self.state = run.state
        self.observe(self._on_asked, names="asked")
        self.observe(self._on_hello, names="hello")
        run.listeners.append(self._on_event)
        if not run.is_running:
            self.state = run.state

    def close(self) -> None:
        """Stop following the run, and close the widget."""
        if self._on_event in self.run.listeners:
            self.run.listeners.remove(self._on_event)
        super().close()

    def _on_asked(self, change: Any) -> None:
        self.run.stop()
        self.state = self.run.state

    def _on_hello(self, change: Any) -> None:
        self.reply = change["new"]

    def _on_event(self, event: Event) -> None:
        if event.kind == "ended":
            self.state = event.run.state

    def __repr__(self) -> str:
        return f"StopButton({self.run!r})"


class TuningView(ipywidgets.VBox):  # type: ignore[misc]
    """A tuning run: how the best rises while it goes on, what fails, and a button to stop it.

    Parameters
    ----------
    run : TuningRun
        What `dlcompiler.autotune.tune` returned, going on or ended.

    Examples
    --------
    >>> run = tune(Workload.of("matmul", m=1024, n=1024, k=1024))              # doctest: +SKIP
    >>> TuningView(run)                                                        # doctest: +SKIP
    """

    def __init__(self, run: TuningRun) -> None:
        self.run = run
        """What is shown."""
        self.curve = TuningCurve(run)
        """The picture and its text."""
        self.stop = StopButton(run)
        """The button."""
        super().__init__([self.stop, self.curve])

    def close(self) -> None:
        """Close the widgets; the run goes on."""
        self.curve.close()
        self.stop.close()
        super().close()

    def __repr__(self) -> str:
        return f"TuningView({self.run!r})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        data = super()._repr_mimebundle_(**kwargs)
        if data is None:
            return None
        # What shows where no front end runs the widget.
        return {**data, "text/plain": repr(self), "text/html": str(tuning_html(self.run))}
