import json

from dlcompiler.pipeline import lower
from dlcompiler.schedule import Schedule
from dlcompiler.views.history.compare import Side, compare_states, comparison_html

HOSTILE = "</script><img src=x onerror=alert(1)>"


def side(schedule: Schedule, args, **more):
    return Side(schedule.node, lower(schedule, args, simple_mode=True), **more)


def two(plain, tensors):
    i, j = tensors[2].op.axis
    plain[tensors[2]].parallel(i)
    start = plain.node.id
    plain[tensors[2]].vectorize(j)
    a = side(plain, tensors)
    plain.jump(start)
    plain[tensors[2]].unroll(j)
    return a, side(plain, tensors)


def test_steps_stand_beside_each_other(plain, tensors):
    a, b = two(plain, tensors)
    view = compare_states(a, b)
    assert [(s["a"], s["b"], s["status"]) for s in view["steps"]] == [
        ("parallel C i", "parallel C i", "same"),
        ("vectorize C j", None, "only in A"),
        (None, "unroll C j", "only in B"),
    ]
    assert json.loads(json.dumps(view)) == view


def test_the_program_is_that_of_b_against_that_of_a(plain, tensors):
    a, b = two(plain, tensors)
    view = compare_states(a, b)
    texts = {s: [x["text"].strip() for x in view["program"]["lines"] if x["status"] == s]
             for s in ("added", "removed")}  # fmt: skip
    assert any("unrolled" in text for text in texts["added"])
    assert any("vectorized" in text for text in texts["removed"])
    assert view["summary"] == (
        "1 step in common, 1 only in A, 1 only in B; "
        f"lines only in B's program: {len(texts['added'])}, "
        f"only in A's: {len(texts['removed'])}."
    )


def test_a_state_and_itself(plain, tensors):
    a = side(plain, tensors)
    view = compare_states(a, a)
    assert view["summary"].endswith("the programs are the same.")
    assert view["steps"] == []


def test_metrics_are_paired_by_name(plain, tensors):
    a, b = two(plain, tensors)
    bytes_ = {"name": "bytes read", "unit": "B", "kind": "exact"}
    a = Side(a.node, a.program, [{**bytes_, "value": 4096, "text": "4 KiB"}])
    b = Side(b.node, b.program, [
        {**bytes_, "value": 1024, "text": "1 KiB"},
        {"name": "lanes", "value": 8, "unit": "1", "text": "8", "kind": "exact"},
    ])  # fmt: skip
    a.node.notes["measured"] = "6.1 ms ± 0.2 ms"
    metrics = compare_states(a, b)["metrics"]
    assert [(f["name"], f["a"], f["b"], f["change"]) for f in metrics] == [
        ("bytes read", "4 KiB", "1 KiB", "0.25×"),
        ("lanes", "–", "8", ""),
        ("measured", "6.1 ms ± 0.2 ms", "–", ""),
    ]


def test_a_state_without_a_program_is_said(plain, tensors):
    C = tensors[2]
    a = side(plain, tensors)
    cached = plain.cache_write(C, "local")
    plain[cached].compute_at(plain[C], C.op.axis[0])
    plain[C].fuse(*C.op.axis)
    try:
        lower(plain, tensors)
    except Exception as error:
        view = compare_states(a, Side(plain.node, error))
    assert view["program"] is None
    assert view["problems"][0].startswith("B has no program: ")


def test_as_html(plain, tensors, parsed):
    a, b = two(plain, tensors)
    a.node.name = HOSTILE
    b.node.notes["measured"] = HOSTILE
    text = "".join(parsed(comparison_html(compare_states(a, b))).itertext())
    assert text.count(HOSTILE) == 2
    assert "Program of B compared with that of A" in text
