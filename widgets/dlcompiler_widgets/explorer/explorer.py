"""The Explorer: the workbench with all panes, and its imports and exports."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Self

from dlcompiler.errors import DLCompilerError, ScheduleError, TargetError
from dlcompiler.output_files import write_file
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.schedule.saved.document import Saved, from_json, from_link, to_json, to_link
from dlcompiler.target import Target, resolve
from dlcompiler.te import Tensor
from dlcompiler.te.notation.program import read_program
from dlcompiler.views.code.export import notebook_text, python_text
from dlcompiler.views.render.html import func_html, history_html, tree_html
from dlcompiler.views.render.markup import Markup
from dlcompiler_widgets.explorer.exports import replay_of, saved_of
from dlcompiler_widgets.explorer.measured import is_measured
from dlcompiler_widgets.explorer.pictures import PICTURES, still_html
from dlcompiler_widgets.explorer.recording import Limits
from dlcompiler_widgets.explorer.replay import ReplayPage
from dlcompiler_widgets.explorer.snapshot import PANES
from dlcompiler_widgets.explorer.widget import Workbench
from dlcompiler_widgets.explorer.writing import EXAMPLE
from dlcompiler_widgets.static_output import section


class Explorer(Workbench):
    """An interactive view of a schedule: its loop nest, the possible steps, and their effects.

    It edits the given schedule. It also shows steps that other cells apply to the schedule.

    Parameters
    ----------
    schedule : Schedule or Tensor, optional
        The schedule, or the tensors to compute. By default, an example is shown, with the editor
        open.
    args, target, **options
        As for `Workbench`.

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.schedule import create_schedule
    >>> A = te.placeholder((64, 64), name="A")
    >>> B = te.compute((64, 64), lambda i, j: A[j, i], name="B")
    >>> Explorer(create_schedule(B.op), [A, B])
    Explorer(main on cpu: 1 stage, 2 loops; 0 steps)
    """

    shown_panes = tuple(PANES)

    def __init__(
        self,
        schedule: Schedule | Tensor | Sequence[Tensor] | None = None,
        args: Sequence[Tensor] | None = None,
        target: str | Target = "cpu",
        **options: Any,
    ) -> None:
        if schedule is None:
            program = read_program(EXAMPLE)
            super().__init__(
                create_schedule(list(program.outputs)), program.args, target, **options
            )
            self.open_editor()
        else:
            super().__init__(schedule, args, target, **options)

    @classmethod
    def write(
        cls,
        text: str,
        /,
        target: str | Target = "cpu",
        name: str = "main",
        level: str = "work",
        **declarations: Any,
    ) -> Self:
        """Open an expression that is given as text; it is parsed and never evaluated.

        Parameters
        ----------
        text : str
            Statements in notation, and lines such as ``A: float32[512, 512]``.
        target : str or Target
            What to compile for.
        name : str
            Name of the function.
        level : str
            How much is shown at first.
        **declarations
            What no line of the text says: ``A=((512, 512), "float32")``.

        Raises
        ------
        ExpressionError
            With a caret under the character that is wrong.

        Examples
        --------
        >>> Explorer.write("C[i, j] += A[i, k] * B[k, j]", A=(64, 32), B=(32, 16))
        Explorer(main on cpu: 1 stage, 3 loops; 0 steps)
        """
        program = read_program(text, **declarations)
        return cls(
            create_schedule(list(program.outputs)), program.args, target, name=name, level=level
        )

    def open_editor(self) -> None:
        """Show the editor of the expression."""
        with self._locked():
            self._turn("write", {})
            self._push(None)

    def to_python(self) -> str:
        """Return a complete Python program that makes this schedule."""
        return python_text(saved_of(self._session))

    def to_notebook(self) -> str:
        """Return a notebook, as JSON, that makes, shows, verifies and measures this schedule."""
        return notebook_text(saved_of(self._session))

    def to_json(self) -> str:
        """Return the schedule as JSON: all states with their names and notes."""
        return to_json(saved_of(self._session))

    def to_link(self) -> str:
        """Return the steps to the current state as a URL fragment."""
        return to_link(saved_of(self._session))

    def save_html(
        self,
        path: str | PathLike[str],
        *,
        max_bytes: int = 4_000_000,
        max_seconds: float = 120.0,
    ) -> ReplayPage:
        """Write an HTML file that replays all visited states, without kernel and network.

        Parameters
        ----------
        path
            The file.
        max_bytes
            About how much is recorded; what is left out is said, in the page, too.
        max_seconds
            How long the recording may take [s].

        Returns
        -------
        ReplayPage
            What was written.
        """
        with self._locked():
            page = replay_of(self._session, Limits(max_bytes, max_seconds))
        write_file(path, page.html)
        return page

    @classmethod
    def from_json(cls, text: str, **options: Any) -> Self:
        """Open a schedule that `to_json` wrote; nothing in it is evaluated.

        Parameters
        ----------
        text
            The JSON.
        **options
            As for the class.

        Raises
        ------
        DLCompilerError
            If it is no schedule of this version, or a step does not apply.
        """
        return cls._opened(from_json(text), options)

    @classmethod
    def from_link(cls, text: str, **options: Any) -> Self:
        """Open a schedule from a link (or its fragment) that `to_link` wrote; see `from_json`."""
        return cls._opened(from_link(text), options)

    @classmethod
    def _opened(cls, saved: Saved, options: dict[str, Any]) -> Self:
        given = {"target": saved.target, "name": saved.name, **options}
        try:
            resolve(given["target"])
        except TargetError as error:
            if "target" in options:
                raise
            raise ScheduleError(
                "open a schedule", "no target here has the name of its target",
                got=repr(saved.target),
                hint='give one: Explorer.from_json(text, target="cpu")',
            ) from error  # fmt: skip
        return cls(saved.schedule, saved.args, **given)

    def static_parts(self) -> dict[str, Markup]:
        """Return the open picture, the ladder, the loop nest, the program and the history.

        Without a measured state, the ladder has no bars: it is left out if its tab is not open.
        """
        session = self._session
        tab = str(self.picture.get("tab", session.tabs["picture"]))
        pictures = {
            PICTURES[name].text: still_html(self.still(name))
            for name in dict.fromkeys((tab, "ladder") if is_measured(session) else (tab,))
            if name in PICTURES and PICTURES[name].kind != "off" and PICTURES[name].applies(session)
        }
        program = session.lowered(self.schedule.node, "loops")
        texts = {} if isinstance(program, DLCompilerError) else {"Program": func_html(program)}
        session = self._session
        history = history_html(self.schedule.history, session.predictions.of(session))
        return {
            **pictures,
            # As a picture, the nest is there already.
            "Loop nest as text": section(
                "Loop nest as text", tree_html(session.tree), is_open=tab != "nest"
            ),
            **{name: section(name, text, is_open=True) for name, text in texts.items()},
            "History": section("History", history, is_open=True),
        }
