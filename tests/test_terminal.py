"""Control characters in printed text are escaped, never sent to the terminal."""

import io
import unicodedata

import pytest

from dlcompiler.errors import UserError
from dlcompiler.terminal import escaped, show


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("over\rwritten\b", r"over\rwritten\x08"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\x9b2J\x7f", r"\x9b2J\x7f"),
        ("\u202egpj.exe", r"\u202egpj.exe"),
        ("\u2066a\u2069", r"\u2066a\u2069"),
        ("half \ud800", r"half \ud800"),
        ("Größe 行 🙂", "Größe 行 🙂"),
    ],
)
def test_escapes(text, shown):
    assert escaped(text) == shown


def test_every_control_character_is_escaped():
    for code in range(0x110000):
        character = chr(code)
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
            assert escaped(character).isascii(), hex(code)
        if unicodedata.bidirectional(character) in (
            "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI",
        ):  # fmt: skip
            assert escaped(character).isascii(), hex(code)


def test_what_is_kept():
    assert escaped("a\n\x1bb\t", keep="\n\t") == "a\n\\x1bb\t"


def test_a_text_cannot_pass_for_a_line_of_its_own():
    stream = io.StringIO()
    show("name\nall is well", "next", file=stream)
    assert stream.getvalue() == "name\\nall is well\nnext\n"


def test_errors_escape_what_they_quote():
    error = UserError("load a\x1b[2J", "no\x07", got="x\n\x1by", hint="\u202e")
    assert str(error) == (
        "load a\\x1b[2J: no\\x07\n  got       x\n            \\x1by\n  hint      \\u202e"
    )
