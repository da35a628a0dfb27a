import json

import pytest

from dlcompiler.pipeline import lower
from dlcompiler.schedule import Schedule
from dlcompiler.views.history.columns import number_pairs
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


def metric(value, name="bytes read", unit="byte", text=""):
    return {"name": name, "unit": unit, "kind": "exact", "value": value, "text": text}


def numbers(a, b):
    return [(f["name"], f["unit"], f["a"], f["b"], f["change"]) for f in number_pairs(a, b)]


def test_metrics_are_paired_by_name(plain, tensors):
    a, b = two(plain, tensors)
    a = Side(a.node, a.program, [metric(4096)])
    b = Side(b.node, b.program, [metric(1024), metric(8, "lanes", "1")])
    a.node.notes["verified"] = "numpy"
    view = compare_states(a, b)
    assert [(f["name"], f["unit"], f["a"], f["b"], f["change"]) for f in view["metrics"]] == [
        ("bytes read", "KiB", "4", "1", "0.25×"),
        ("lanes", "1", "–", "8", ""),
    ]
    assert view["notes"] == [{"name": "verified", "a": "numpy", "b": "–"}]


@pytest.mark.parametrize(
    ("a", "b", "unit", "row"),
    [
        (2**28, 2**27 + 2**20, "byte", ("MiB", "256", "129", "0.50×")),
        (1536, 100, "byte", ("KiB", "1.500", "0.098", "0.065×")),
        (0, 0, "byte", ("B", "0", "0", "")),
        (0.0112, 0.0000011, "s", ("ms", "11.2000", "0.0011", "0.000098×")),
        (0.0112, 1e-9, "s", ("ms", "11.2000", "< 0.0001", "0.000000089×")),
        (2.0, 2.0, "s", ("s", "2", "2", "same")),
        (2 * 10**9, 3 * 10**9, "op", ("G op", "2", "3", "1.5×")),
        (10**16, 1, "op", ("T op", "10,000.0000", "< 0.0001", "0.00000000000000010×")),
        (None, 3, "iterations", ("iterations", "–", "3", "")),
        (None, None, "byte", ("B", "–", "–", "")),
    ],
)  # fmt: skip
def test_both_numbers_of_a_row_have_one_unit_and_as_many_decimals(a, b, unit, row):
    assert numbers([metric(a, unit=unit)], [metric(b, unit=unit)]) == [("bytes read", *row)]


def test_a_bound_is_no_count():
    pair = number_pairs([metric(100, unit="op", text="at most 100 operations")], [metric(90)])
    assert pair[0]["a"] == "≤ 100"


def test_reasons_are_said_once(plain, tensors):
    a, b = two(plain, tensors)
    why = [metric(None, text="unknown: no model"), metric(None, "time", "s", "unknown: no model")]
    view = compare_states(Side(a.node, a.program, why), Side(b.node, b.program, why))
    assert view["unknown"] == ["unknown: no model"]


class Time:
    def __init__(self, seconds, target="cpu"):
        self.seconds, self.target = seconds, target


def test_measured_times_are_numbers(plain, tensors):
    a, b = two(plain, tensors)
    a.node.notes["measured"], b.node.notes["measured"] = Time(0.002), Time(0.001)
    view = compare_states(a, b)
    assert [(f["kind"], f["unit"], f["a"], f["b"], f["change"]) for f in view["metrics"]] == [
        ("measured", "ms", "2", "1", "0.50×")
    ]
    del b.node.notes["measured"]
    assert compare_states(a, b)["metrics"][0]["b"] == "–"


def test_times_of_code_for_different_targets_are_not_compared(plain, tensors):
    a, b = two(plain, tensors)
    a.node.notes["measured"] = Time(0.002)
    b.node.notes["measured"] = Time(0.001, "x86-64-sse2")
    view = compare_states(a, b)
    assert view["metrics"][0]["change"] == ""
    assert view["unknown"] == ["the times are of code for cpu (A) and for x86-64-sse2 (B)"]


def test_what_is_known_for_another_target_names_it(plain, tensors):
    a, b = two(plain, tensors)
    a.node.notes["measured"], b.node.notes["measured"] = Time(0.002), Time(0.001)
    own, other = (compare_states(a, b, target) for target in ("cpu", "aarch64"))
    assert own["metrics"][0]["name"] == "time of a call"
    assert other["metrics"][0]["name"] == "time of a call, code for cpu"
    assert other["notes"][0]["a"].endswith("(for cpu)")


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
