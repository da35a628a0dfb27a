"""Docstrings as Markdown, for pages that are written from them."""

from __future__ import annotations


def markdown(text: str, language: str = "python") -> str:
    """Return a docstring as Markdown: literal blocks and tables become fenced blocks.

    Parameters
    ----------
    text
        The docstring.
    language
        What literal blocks are written in; ``text`` for sketches of programs.
    """
    fence = f"```{language}"
    lines: list[str] = []
    is_code = is_table = False
    for line in text.splitlines():
        if is_code and line and not line.startswith(" "):
            _close(lines)
            is_code = False
        is_rule = line.startswith("===")
        if is_rule and not is_table:
            lines.append("```text")
            is_table = True
        if is_table and not line:
            lines.append("```")
            is_table = False
        if line.endswith("::") and not is_code:
            lines += [line.removesuffix(":").replace("``", "`"), "", fence]
            is_code = True
        elif is_table:
            lines.append(line)
        elif not (is_code and lines[-1] == fence and not line):
            lines.append(line.removeprefix("    ") if is_code else line.replace("``", "`"))
    if is_code or is_table:
        lines.append("```")
    return "\n".join(lines) + "\n"


def _close(lines: list[str]) -> None:
    """End a fenced block before the empty lines that follow it."""
    while lines[-1] == "":
        lines.pop()
    lines += ["```", ""]


def summary(text: str) -> str:
    """Return the part of a docstring before its first numpydoc section."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if number and line and set(line) == {"-"} and len(line) == len(lines[number - 1]):
            return "\n".join(lines[: number - 1]).rstrip() + "\n"
    return text.rstrip() + "\n"
