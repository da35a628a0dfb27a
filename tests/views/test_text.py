from dlcompiler.views import text_table


def test_a_table_without_rows():
    assert text_table(("loop", "extent"), []) == "loop  extent"


def test_missing_numbers_leave_a_gap():
    assert text_table(("a", "n"), [("x", None), ("y", 1234.5)]) == "a       n\nx\ny  1234.5"
