"""The kernels of a program as lines to show, each after its launch."""

from __future__ import annotations

from dlcompiler.ir.program import Program
from dlcompiler.views.code.program import Line, program


def kernel_lines(whole: Program) -> list[Line]:
    """Return the lines of all kernels, in the order in which they are launched.

    Parameters
    ----------
    whole
        What `pipeline.lower_program` returned.
    """
    lines: list[Line] = []
    for launch in whole.launches:
        lines += [_comment(f"# launch: {launch.size}"), *program(launch.kernel)["lines"]]
    return [{**line, "number": number} for number, line in enumerate(lines, 1)]


def _comment(text: str) -> Line:
    return {
        "number": None,
        "text": text,
        "depth": 0,
        "status": "same",
        "keys": [],
        "tokens": [{"kind": "comment", "text": text}],
    }
