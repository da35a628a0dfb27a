import pytest

from dlcompiler import te
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.views import Section, loop_tree, page, program
from dlcompiler.views.render.colors import HUES, lighter
from dlcompiler.views.render.html import (
    func_html,
    history_html,
    program_html,
    schedule_html,
    tensor_html,
    tree_html,
)
from dlcompiler.views.render.markup import Markup, escape, join, tag

HOSTILE = "<img src=x onerror=alert(1)>"


def text_of(root):
    return "".join(root.itertext())


def test_every_core_object_shows_itself(blocked, tensors, parsed):
    for value in (blocked, blocked.history, tensors[0], tensors[2], lower(blocked, tensors)):
        fragment = value._repr_html_()
        assert isinstance(fragment, str)
        assert len(fragment.encode()) < 60_000
        parsed(fragment)


def picture_of(root):
    """The lines of the picture, without its heading."""
    (picture,) = [div for div in root.iter("div") if div.get("class") == "dlc-nest"]
    assert picture.get("title").startswith("Loop nest: ")
    return list(picture)[1:]


def test_the_picture_and_its_table_show_every_loop(blocked, parsed):
    root = parsed(schedule_html(blocked))
    lines, table = picture_of(root), root.find(".//table")
    rows = loop_tree(blocked)["rows"]
    assert [line.get("title") for line in lines] == [row["label"] for row in rows]
    assert len(table.findall("./tbody/tr")) == len(rows)
    for row, line in zip(rows, lines, strict=True):
        assert row["name"] in text_of(line)
        assert row["name"] in text_of(table)
        if row["type"] == "loop":
            assert f"{row['extent']:,}" in text_of(line)
            assert row["kind"] in text_of(line)
    assert "How to read" in text_of(root)


def bars(line):
    """The colours of the bars that pass beside a line, from the left."""
    styles = [span.get("style") or "" for span in line.iter("span")]
    return [style.partition("background-color:")[2] for style in styles if "background" in style]


def test_each_bar_spans_its_loop_and_no_more(blocked, parsed):
    rows = loop_tree(blocked)["rows"]
    keys = [row["key"] for row in rows]
    lines = dict(zip(keys, picture_of(parsed(schedule_html(blocked))), strict=True))
    i, j = HUES[:2]
    assert bars(lines["C"]) == []
    assert bars(lines["C/i.outer"]) == [i]
    assert bars(lines["C.local"]) == [i, j]
    assert bars(lines["C.local//body"]) == [i, j, HUES[2], i, lighter(HUES[2]), j]
    assert bars(lines["C/i.inner"]) == [i, j, lighter(i)]
    assert bars(lines["C//body"]) == [i, j, lighter(i), lighter(j)]


def test_a_fused_loop_has_a_bar_of_two_colours(plain, tensors, parsed):
    plain[tensors[2]].fuse(*tensors[2].op.axis)
    line = picture_of(parsed(schedule_html(plain)))[1]
    assert bars(line) == list(HUES[:2])


def test_without_styles_indented_text_remains(plain, parsed):
    lines = [text_of(line) for line in picture_of(parsed(schedule_html(plain)))]
    assert [len(line) - len(line.lstrip("\u00a0")) for line in lines] == [0, 2, 3, 3, 4, 4]


def test_a_program_marks_what_changed(plain, tensors, parsed):
    before = lower(plain, tensors)
    plain[tensors[2]].vectorize(tensors[2].op.axis[1])
    text = text_of(parsed(program_html(program(lower(plain, tensors), before))))
    assert "Lines changed by the last step: " in text
    assert "−         for j in range(64):" in text


def test_a_cut_program_says_so(parsed):
    A = te.placeholder((1000,), name="A")
    B = te.compute((1000,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    s[B].unroll(s[B].op.axis[0])
    fragment = func_html(lower(s, [A, B]))
    assert "… and 601 more lines" in text_of(parsed(fragment))


def test_a_history_shows_notes(plain, parsed):
    plain.node.notes["measured"] = HOSTILE
    root = parsed(history_html(plain.history))
    assert f"measured {HOSTILE}" in text_of(root)


def test_a_tensor_shows_its_definition(tensors, parsed):
    text = text_of(parsed(tensor_html(tensors[2])))
    assert "C — 64 × 64, float32, computed from A, B" in text
    assert "C[i, j] += A[i, k]*B[k, j]\nfor i < 64, j < 64, k < 64" in text
    assert "A — 64 × 64, float32, an input" in text_of(parsed(tensor_html(tensors[0])))


def test_hostile_names_stay_text(plain, parsed):
    tree = loop_tree(plain)
    for row in tree["rows"]:
        row["name"] = row["label"] = row["detail"] = row["made_by"] = HOSTILE
    tree["inputs"] = tree["inlined"] = tree["obligations"] = [HOSTILE]
    tree["summary"] = f'"{HOSTILE}'
    fragment = tree_html(tree)
    assert "<img" not in fragment
    assert HOSTILE in text_of(parsed(fragment))


def test_escaping():
    assert tag("p", {"title": 'a"b'}, "<", Markup("<br/>")) == '<p title="a&quot;b">&lt;<br/></p>'
    assert join("&", escape("&")) == "&amp;&amp;"
    assert escape("a\x00b\x1bc") == "a\ufffdb\ufffdc"
    assert tag("td", {"style": None}) == "<td></td>"


def test_a_page_stands_alone(blocked, tensors):
    fragments = [schedule_html(blocked), func_html(lower(blocked, tensors))]
    text = page("A <b> title", [Section("Step & one", "First.\n\nSecond.", fragments)], "Intro")
    assert text.startswith("<!DOCTYPE html>\n<html")
    assert "<script" not in text
    assert "http://" not in text
    assert "https://" not in text
    assert "default-src &#x27;none&#x27;" in text
    assert "<h1>A &lt;b&gt; title</h1>" in text
    assert "<p>First.</p><p>Second.</p>" in text
    assert "prefers-color-scheme: dark" in text


def test_a_page_takes_no_plain_text_as_a_fragment():
    with pytest.raises(TypeError, match="a fragment of 'one' is str, not Markup"):
        page("title", [Section("one", fragments=["<b>raw</b>"])])


def test_a_tensor_of_symbolic_shape():
    n = te.var("n")
    html = te.placeholder((n, 1024), name="A")._repr_html_()
    assert "n × 1,024" in html
