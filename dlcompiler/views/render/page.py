"""Self-contained HTML page: fragments under titles, with a style sheet and no script.

Its content security policy forbids scripts and remote content, so that no fragment can execute
code or send a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlcompiler.views.render.markup import Markup, join, tag

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)

STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --soft: #5b6670; --ground: #fdfdfc;
  --panel: #f4f5f6; --line: #d9dde1; --link: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7ea; --soft: #a3adb6; --ground: #15181b; --panel: #1d2125;
    --line: #363d44; --link: #7db8ee; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--ground);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2.5rem 1.25rem 5rem; }
h1 { font-size: 1.9rem; line-height: 1.25; margin: 0 0 .5rem; letter-spacing: -.01em; }
h2 { font-size: 1.25rem; line-height: 1.35; margin: 0 0 .4rem; }
section { border-top: 1px solid var(--line); margin-top: 2.25rem; padding-top: 1.5rem; }
p { max-width: 44rem; margin: .5rem 0; }
a { color: var(--link); }
nav ol { columns: 2 18rem; padding-left: 1.4rem; margin: 1rem 0 0; }
pre { overflow-x: auto; background: var(--panel); border: 1px solid var(--line);
  border-radius: 6px; padding: .75rem 1rem; }
svg { margin: .75rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .75rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { text-align: left; color: var(--soft); font-weight: 600; }
summary { cursor: pointer; color: var(--soft); }
@media print { section { break-inside: avoid; } body { background: none; } }
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: a title, some text, and fragments below it.

    The text's paragraphs are separated by empty lines. Fragments are `Markup`, as the functions of
    `views.html` return it.
    """

    title: str
    text: str = ""
    fragments: Sequence[Markup] = ()


def page(title: str, sections: Sequence[Section], text: str = "") -> str:
    """Return a complete HTML page.

    Parameters
    ----------
    title
        Title of the page.
    sections
        Its parts.
    text
        Introduction before the sections.

    Returns
    -------
    str
        A document that needs nothing else and runs no script.

    Raises
    ------
    TypeError
        If a fragment is not `Markup`: unescaped text must not get into the page.
    """
    for section in sections:
        for fragment in section.fragments:
            if not isinstance(fragment, Markup):
                raise TypeError(f"a fragment of {section.title!r} is {type(fragment).__name__}, "
                                "not Markup as the functions of views.html return it")  # fmt: skip
    head = tag(
        "head",
        None,
        tag("meta", {"charset": "utf-8"}),
        tag("meta", {"http-equiv": "Content-Security-Policy", "content": POLICY}),
        tag("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        tag("title", None, title),
        # Constant text of this module: in a style sheet, quotes may not be escaped.
        tag("style", None, Markup(STYLE)),
    )
    numbered = list(enumerate(sections, 1))
    contents = tag(
        "nav",
        {"aria-label": "Contents"},
        tag("ol", None, *(tag("li", None, tag("a", {"href": f"#section-{n}"}, section.title))
                          for n, section in numbered)),
    )  # fmt: skip
    main = tag(
        "main",
        None,
        tag("h1", None, title),
        *_paragraphs(text),
        contents,
        *(_section(n, section) for n, section in numbered),
    )
    document = tag("html", {"lang": "en"}, head, tag("body", None, main))
    return f"<!DOCTYPE html>\n{document}\n"


def _section(number: int, section: Section) -> Markup:
    return tag(
        "section",
        {"id": f"section-{number}"},
        tag("h2", None, section.title),
        *_paragraphs(section.text),
        *(tag("div", {"class": "scroll"}, join(fragment)) for fragment in section.fragments),
    )


def _paragraphs(text: str) -> list[Markup]:
    return [tag("p", None, part.strip()) for part in text.split("\n\n") if part.strip()]
