"""The view of a tuning run in a notebook: its dashboard, and below it an Explorer of trials."""

from __future__ import annotations

import ipywidgets

from dlcompiler.autotune import Trial, TuningRun
from dlcompiler.space import Config
from dlcompiler.views.tuning import tuning_html
from dlcompiler_widgets.explorer import Explorer
from dlcompiler_widgets.static_output import StaticOutput, static_page
from dlcompiler_widgets.tuning.dashboard import TuningDashboard
from dlcompiler_widgets.tuning.opening import open_trial


class TuningView(StaticOutput, ipywidgets.VBox):  # type: ignore[misc]
    """Shows a tuning run: a dashboard with buttons to pause and stop it, and an Explorer below.

    Parameters
    ----------
    run : TuningRun
        What `dlcompiler.autotune.run.tune` returned, going on or ended.
    own : Config, optional
        A config of your own, marked in the pictures of the space.

    Examples
    --------
    >>> run = tune(Workload.of("matmul", m=1024, n=1024, k=1024))              # doctest: +SKIP
    >>> TuningView(run)                                                        # doctest: +SKIP
    """

    def __init__(self, run: TuningRun, own: Config | None = None) -> None:
        self.run = run
        """What is shown."""
        self.explorer: Explorer | None = None
        """The Explorer of the opened trials; None before a trial is opened."""
        self.dashboard = TuningDashboard(run, own, self.explore)
        """The pictures, the table and the buttons."""
        super().__init__([self.dashboard])
        self.dashboard.held_by(self)

    def explore(self, trial: Trial | int) -> Explorer:
        """Open a trial in the Explorer below, if possible as a branch of the history there.

        Parameters
        ----------
        trial : Trial or int
            The trial, or its number.
        """
        chosen = trial if isinstance(trial, Trial) else self.run.trials[trial]
        before, self.explorer = self.explorer, open_trial(self.run, chosen, self.explorer)
        if self.explorer is not before:
            self.children = (self.dashboard, self.explorer)
            self.explorer.held_by(self)
            if before is not None:
                before.close()
        self.static_changed()
        return self.explorer

    def close(self) -> None:
        """Close the widgets; the run goes on."""
        self.dashboard.close()
        if self.explorer is not None:
            self.explorer.close()
        super().close()

    def __repr__(self) -> str:
        return f"TuningView({self.run!r})"

    def static_text(self) -> str:
        """Return what `repr` says: the run, and its best."""
        return repr(self)

    def static_html(self) -> str:
        """Return the static picture of the run, and that of the Explorer if a trial is open."""
        parts = {"the run": tuning_html(self.run)}
        explorer = self.explorer
        if explorer is not None:
            explorer._catch_up()
            with explorer._locked():
                parts |= explorer.static_parts()
        return str(static_page(repr(self), parts, self.static_text))
