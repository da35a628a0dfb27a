"""Docstrings as Markdown, for pages that are written from them."""

from __future__ import annotations

from collections.abc import Callable


def markdown(text: str, language: str = "python") -> str:
    """Return a docstring as Markdown: literal blocks and tables become fenced blocks.

    Parameters
    ----------
    text
        The docstring.
    language
        What literal blocks are written in; ``text`` for sketches of programs. A block that leaves
        something out with ``…`` is a sketch in any case.
    """
    lines: list[str] = []
    rest = text.splitlines()
    while rest:
        line = rest.pop(0)
        if line.startswith("==="):
            lines += ["```text", line, *_taken(rest, str.strip), "```"]
        elif line.endswith("::"):
            block = _taken(rest, lambda line: not line or line.startswith(" "))
            code = "\n".join(line.removeprefix("    ") for line in block).strip("\n")
            lines += [line.removesuffix(":").replace("``", "`"), ""]
            lines += [f"```{'text' if '…' in code else language}", code, "```"]
            lines += [""] if rest else []
        else:
            lines.append(line.replace("``", "`"))
    return "\n".join(lines) + "\n"


def _taken(lines: list[str], belongs: Callable[[str], object]) -> list[str]:
    """Remove the first lines that belong to a block, and return them."""
    end = next((at for at, line in enumerate(lines) if not belongs(line)), len(lines))
    taken, lines[:] = lines[:end], lines[end:]
    return taken


def summary(text: str) -> str:
    """Return the part of a docstring before its first numpydoc section."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if number and line and set(line) == {"-"} and len(line) == len(lines[number - 1]):
            return "\n".join(lines[: number - 1]).rstrip() + "\n"
    return text.rstrip() + "\n"
