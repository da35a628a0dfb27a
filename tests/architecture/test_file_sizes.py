"""A file is about 300 lines; above 500 it says why, above 800 it is split."""

import ast

FOLDERS = ("dlcompiler", "widgets", "tests")
SUFFIXES = (".py", ".js", ".css")
EXPLAIN_ABOVE = 500
LIMIT = 800
REASON = "Long because"


def _files(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES:
                yield path, path.read_text(encoding="utf-8")


def _explains_its_length(path, text):
    """Whether a line of the module docstring (in JS and CSS: first comment) gives the reason."""
    if path.suffix == ".py":
        head = ast.get_docstring(ast.parse(text)) or ""
    else:
        head = text[: text.find("*/")]
    return any(line.lstrip(" *").startswith(REASON) for line in head.splitlines())


def test_no_file_is_above_the_limit(root):
    long = [f"{p.relative_to(root)}: {n}" for p, t in _files(root) if (n := t.count("\n")) > LIMIT]
    assert not long, f"split these files, they have more than {LIMIT} lines"


def test_a_long_file_explains_itself(root):
    silent = [
        str(path.relative_to(root))
        for path, text in _files(root)
        if text.count("\n") > EXPLAIN_ABOVE and not _explains_its_length(path, text)
    ]
    assert not silent, (
        f"more than {EXPLAIN_ABOVE} lines: split, or begin a line of the module docstring"
        f" with '{REASON}'"
    )
