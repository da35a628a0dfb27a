import itertools

import pytest

from dlcompiler import te
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.views import Section, loop_tree, page, program
from dlcompiler.views.html import (
    func_html,
    history_html,
    program_html,
    schedule_html,
    tensor_html,
    tree_html,
)
from dlcompiler.views.markup import Markup, escape, join, tag

HOSTILE = "<img src=x onerror=alert(1)>"


def text_of(root):
    return "".join(root.itertext())


def test_every_core_object_shows_itself(blocked, tensors, parsed):
    for value in (blocked, blocked.history, tensors[0], tensors[2], lower(blocked, tensors)):
        fragment = value._repr_html_()
        assert isinstance(fragment, str)
        assert len(fragment.encode()) < 60_000
        parsed(fragment)


def test_the_picture_and_its_table_show_every_loop(blocked, parsed):
    root = parsed(schedule_html(blocked))
    (svg,) = root.iter("{http://www.w3.org/2000/svg}svg")
    table = root.find(".//table")
    rows = loop_tree(blocked)["rows"]
    titles = [title.text for title in svg.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == [row["label"] for row in rows]
    assert len(table.findall("./tbody/tr")) == len(rows)
    for row in rows:
        assert row["name"] in text_of(svg)
        assert row["name"] in text_of(table)
    assert svg.get("aria-label") == "Loop nest: 2 stages, 8 loops (2 vectorized)"
    assert "How to read" in text_of(root)


def test_each_bar_spans_its_loop_and_no_more(plain, parsed):
    svg = parsed(schedule_html(plain)).find("{http://www.w3.org/2000/svg}svg")
    groups = [g for g in svg if g.find("{http://www.w3.org/2000/svg}rect") is not None]
    spans = []
    for group in groups:
        rect = group.find("{http://www.w3.org/2000/svg}rect")
        top = float(rect.get("y"))
        spans.append((top, top + float(rect.get("height"))))
    assert len(spans) == 3
    for outer, inner in itertools.pairwise(spans):
        assert outer[0] < inner[0] <= inner[1] <= outer[1]
    assert spans[0][1] <= float(svg.get("height"))


def test_a_program_marks_what_changed(plain, tensors, parsed):
    before = lower(plain, tensors)
    plain[tensors[2]].vectorize(tensors[2].op.axis[1])
    text = text_of(parsed(program_html(program(lower(plain, tensors), before))))
    assert "The last step added" in text
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
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
    assert "default-src &#x27;none&#x27;" in text
    assert "<h1>A &lt;b&gt; title</h1>" in text
    assert "<p>First.</p><p>Second.</p>" in text
    assert "prefers-color-scheme: dark" in text


def test_a_page_takes_no_plain_text_as_a_fragment():
    with pytest.raises(TypeError, match="a fragment of 'one' is str, not Markup"):
        page("title", [Section("one", fragments=["<b>raw</b>"])])
