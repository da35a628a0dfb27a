"""Widgets for single texts of the workbench: the passes, and a schedule's code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from dlcompiler.errors import DLCompilerError
from dlcompiler.ir import PrimFunc
from dlcompiler.pipeline.pipelines import passes_of
from dlcompiler.views import program
from dlcompiler.views.code.notation_view import notation_lines
from dlcompiler.views.code.pass_html import passes_html, passes_table
from dlcompiler.views.code.python_view import python_view
from dlcompiler.views.render.html import lines_html, program_html
from dlcompiler.views.render.markup import Markup, tag
from dlcompiler_widgets.explorer.widget import Workbench
from dlcompiler_widgets.static_output import section


class PassDiff(Workbench):
    """The program after each pass of the pipeline, and the lines that the pass changed.

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.schedule import create_schedule
    >>> A = te.placeholder((64, 64), name="A")
    >>> B = te.compute((64, 64), lambda i, j: A[j, i], name="B")
    >>> PassDiff(create_schedule(B.op))
    PassDiff(main on cpu: 1 stage, 2 loops; 0 steps)
    """

    shown_panes = ("text",)
    shown_tabs: ClassVar[Mapping[str, tuple[str, ...]]] = {"text": ("passes",)}
    first_words = "Move through the passes with the slider, or choose one in the list."

    def static_text(self) -> str:
        """Return the passes as a table."""
        with self._locked():
            run = self._session.pass_browser.run(self._session)
        if isinstance(run, DLCompilerError):
            return f"{self!r}\n{run}"
        return f"{self!r}\n{passes_table(run, passes_of(self._session.target))}"

    def static_parts(self) -> dict[str, Markup]:
        """Return a table of the passes and their changes, without times, which vary."""
        run = self._session.pass_browser.run(self._session)
        if isinstance(run, DLCompilerError):
            return {"the passes": tag("p", None, str(run))}
        names = [f"what pass {change.number} changed" for change in run if not change.is_unchanged]
        fragments = passes_html(run, passes_of(self._session.target))
        return dict(zip(("the passes", *names), fragments, strict=True))


class CodePanes(Workbench):
    """A schedule as text, from notation to assembly; each text marks the chosen loop."""

    shown_panes = ("text",)
    shown_tabs: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "text": (
            "loops",
            "notation",
            "final",
            "llvm",
            "assembly",
            "kernels",
            "source",
            "cuda",
            "ptx",
            "opencl",
            "python",
        )
    }
    first_words = "Choose a loop by a click on a line."

    def static_text(self) -> str:
        """Return the notation and the loops as scheduled."""
        with self._locked():
            notation = [line["text"] for line in notation_lines(self.schedule)]
            loops = self._session.lowered(self.schedule.node, "loops")
        return "\n".join([repr(self), *notation, "", str(loops)])

    def static_parts(self) -> dict[str, Markup]:
        """Return the loops as scheduled, then the notation, the steps and the final program.

        LLVM IR and assembly are not included: they are compiled only when their tabs are opened.
        """
        loops = self._session.lowered(self.schedule.node, "loops")
        final = self._session.lowered(self.schedule.node, "final")
        return {
            "the loops as scheduled": section("loops as scheduled", _program(loops), is_open=True),
            "the notation": section(
                "notation", lines_html(notation_lines(self.schedule)), is_open=True
            ),
            "the steps": section("Python", lines_html(python_view(self.schedule))),
            "the final program": section("after all passes", _program(final)),
        }


def _program(func: PrimFunc | DLCompilerError) -> Markup:
    if isinstance(func, DLCompilerError):
        return tag("p", None, str(func))
    return program_html(program(func))
