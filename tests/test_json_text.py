"""JSON input is refused when it is read if no later step could handle it."""

import pytest

from dlcompiler.json_text import JsonError, is_encodable, parse


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("[NaN]", "NaN is not a number of JSON"),
        ("[-Infinity]", "-Infinity is not a number of JSON"),
        ("[1e400]", "the number 1e400 is too large"),
        ("1" * 400, "an integer of 400 digits"),
        ("-" + "1" * 5000, "an integer of 5001 digits"),
        ('{"a": 1, "b": 2, "a": 3}', "the key 'a' stands twice in an object"),
        ('["\\ud800"]', "half of a surrogate pair in the text '\\ud800'"),
        ('{"\\udfff": 1}', "half of a surrogate pair in the text '\\udfff'"),
        ('"\ud800"', "half of a surrogate pair in the text '\\ud800'"),
        (b'"\xff"', "not UTF-8 at byte 1"),
        ("[" * 66 + "]" * 66, "nested more than 64 levels deep"),
        ("[" * 100_000, "nested more than 64 levels deep"),
        ('{"a":' * 100_000, "nested more than 64 levels deep"),
    ],
)
def test_what_is_refused(text, problem):
    with pytest.raises(JsonError) as error:
        parse(text)
    assert str(error.value) == problem


def test_what_is_read():
    assert parse(b'{"a": [1, -2.5, null, true, "\\ud83d\\ude00"]}') == {
        "a": [1, -2.5, None, True, "\U0001f600"]
    }
    assert parse("[" * 64 + "]" * 64)
    assert parse("1" * 100) == int("1" * 100)
    float(parse("9" * 100))
    with pytest.raises(JsonError, match="more than 2 levels"):
        parse("[[[1]]]", deepest=2)


def test_what_is_no_text():
    with pytest.raises(JsonError, match="must be str"):
        parse(None)
    assert not is_encodable("a\udc80")
