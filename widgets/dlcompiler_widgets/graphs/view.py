"""The view of a graph in a notebook: what is fused and why, and below it a kernel's schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import ipywidgets

from dlcompiler.graph import Module
from dlcompiler.graph.ir import MAIN
from dlcompiler.graph.passes import PassContext
from dlcompiler.output_files import write_file
from dlcompiler.target import Target, resolve
from dlcompiler_widgets.explorer import Explorer
from dlcompiler_widgets.graphs.analysis import source_of
from dlcompiler_widgets.graphs.opening import open_kernel
from dlcompiler_widgets.graphs.panel import GraphPanel
from dlcompiler_widgets.graphs.replay import MOST_BYTES, GraphPage
from dlcompiler_widgets.static_output import StaticOutput, static_page


class GraphView(StaticOutput, ipywidgets.VBox):  # type: ignore[misc]
    """Shows what fusion makes of a model: each edge with its verdict, and what the verdict saves.

    Parameters
    ----------
    module : Module
        A model, before `optimize`. If it is fused already, nothing can be decided in the view.
    target : str or Target
        What kernels are built for.
    params : mapping, optional
        Weights by the names of parameters.
    opt_level : int
        Of `optimize`; [1].
    context : PassContext, optional
        Of `optimize`; it takes the place of `opt_level`.
    function : str
        Which function of the module.
    inputs : sequence, optional
        Arrays that the model is measured with; by default random ones.

    Raises
    ------
    GraphError
        If it is no module, or has no such function.

    Examples
    --------
    >>> from dlcompiler.graph import builders
    >>> GraphView(builders.lenet().bound)
    GraphView(18 calls in 9 kernels; fused edges between calls: 9 of 17.)
    """

    def __init__(
        self, module: Module, target: str | Target = "cpu",
        params: Mapping[str, Any] | None = None, *, opt_level: int = 3,
        context: PassContext | None = None, function: str = MAIN,
        inputs: Sequence[Any] | None = None,
    ) -> None:  # fmt: skip
        chosen = context or PassContext(opt_level)
        source = source_of(module, resolve(target), params or {}, chosen, function)
        self.explorer: Explorer | None = None
        """The Explorer of the kernel that is open; None if none is."""
        self.panel = GraphPanel(replace(source, inputs=inputs), self.explore)
        """The graph, with its buttons."""
        self._back = ipywidgets.Button(description="Back to the graph", icon="arrow-up")
        self._back.on_click(lambda _: self.back())
        super().__init__([self.panel])
        self.panel.held_by(self)

    @property
    def module(self) -> Module:
        """The module that consists of kernels, with its decisions; as the view shows it."""
        return self.panel._session.found.after

    def explore(self, number: int) -> Explorer:
        """Open the schedule of a kernel in an Explorer below.

        Parameters
        ----------
        number : int
            Number of the kernel, in the order in which they run; [1].
        """
        made = open_kernel(self.panel._session, number)
        before, self.explorer = self.explorer, made
        made.held_by(self)
        self._show(self.panel, self._back, made)
        if before is not None:
            before.close()
        self.static_changed()
        return made

    def _show(self, *children: Any) -> None:
        self.children = children

    def back(self) -> None:
        """Close the Explorer."""
        before, self.explorer = self.explorer, None
        self._show(self.panel)
        if before is not None:
            before.close()
        self.panel.back()
        self.static_changed()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the measurement that goes on has ended.

        Parameters
        ----------
        timeout_s : float, optional
            How long at most [s].
        """
        self.panel._measuring.wait(timeout_s)

    def save_html(self, path: str | PathLike[str], *, max_bytes: int = MOST_BYTES) -> GraphPage:
        """Write an HTML file that replays the view, without kernel and network.

        It has the decisions that were tried in the view, all levels, each block opened by itself,
        and the graph after each pass.

        Parameters
        ----------
        path : path
            The file.
        max_bytes : int
            About how much is recorded; what is left out is said, in the page, too; [byte].

        Returns
        -------
        GraphPage
            What was written.
        """
        page = self.panel.page(max_bytes)
        write_file(path, page.html)
        return page

    def close(self) -> None:
        """Close the widgets."""
        if hasattr(self, "panel"):  # not one whose construction was refused
            self.panel.close()
            self._back.close()
            if self.explorer is not None:
                self.explorer.close()
        super().close()

    def __repr__(self) -> str:
        return f"GraphView{repr(self.panel).removeprefix('GraphPanel')}"

    def static_text(self) -> str:
        """Return the graph in a sentence."""
        return repr(self)

    def static_html(self) -> str:
        """Return the static picture of the graph, and that of the Explorer if one is open."""
        parts = dict(self.panel.static_parts())
        if self.explorer is not None:
            self.explorer._catch_up()
            with self.explorer._locked():
                parts |= self.explorer.static_parts()
        return str(static_page(repr(self), parts, self.static_text))
