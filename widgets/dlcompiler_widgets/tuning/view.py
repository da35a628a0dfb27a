"""A tuning run in a notebook: its dashboard, and below it the trials that were opened."""

from __future__ import annotations

from typing import Any

import ipywidgets

from dlcompiler.autotune import Trial, TuningRun
from dlcompiler.space import Config
from dlcompiler.views.tuning import tuning_html
from dlcompiler_widgets.explorer import Explorer
from dlcompiler_widgets.tuning.dashboard import TuningDashboard
from dlcompiler_widgets.tuning.opening import open_trial


class TuningView(ipywidgets.VBox):  # type: ignore[misc]
    """A tuning run: its dashboard, with buttons to pause and to stop it, and an Explorer below.

    Parameters
    ----------
    run : TuningRun
        What `dlcompiler.autotune.run.tune` returned, going on or ended.
    own : Config, optional
        A config of your own, to be seen among those that were tried.

    Examples
    --------
    >>> run = tune(Workload.of("matmul", m=1024, n=1024, k=1024))              # doctest: +SKIP
    >>> TuningView(run)                                                        # doctest: +SKIP
    """

    def __init__(self, run: TuningRun, own: Config | None = None) -> None:
        self.run = run
        """What is shown."""
        self.explorer: Explorer | None = None
        """Where a trial was opened; None: nowhere yet."""
        self.dashboard = TuningDashboard(run, own, self.explore)
        """The pictures, the table and the buttons."""
        super().__init__([self.dashboard])

    def explore(self, trial: Trial | int) -> Explorer:
        """Open a trial in the Explorer below: a branch of the one that is there, if it can be.

        Parameters
        ----------
        trial : Trial or int
            The trial, or its number.
        """
        chosen = trial if isinstance(trial, Trial) else self.run.trials[trial]
        before, self.explorer = self.explorer, open_trial(self.run, chosen, self.explorer)
        if self.explorer is not before:
            self.children = (self.dashboard, self.explorer)
            if before is not None:
                before.close()
        return self.explorer

    def close(self) -> None:
        """Close the widgets; the run goes on."""
        self.dashboard.close()
        if self.explorer is not None:
            self.explorer.close()
        super().close()

    def __repr__(self) -> str:
        return f"TuningView({self.run!r})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        data = super()._repr_mimebundle_(**kwargs)
        if data is None:
            return None
        # What shows where no front end runs the widget.
        return {**data, "text/plain": repr(self), "text/html": str(tuning_html(self.run))}
