import json

from dlcompiler.views import history_tree
from dlcompiler.views.history.scene import history_scene


def test_lanes_of_branches(plain, tensors):
    C = tensors[2]
    i, j = C.op.axis
    plain[C].vectorize(j)
    plain.undo()
    plain[C].parallel(i)
    plain[C].unroll(j)
    tree = history_tree(plain.history)
    assert [(row["step"], row["lane"], row["is_on_path"]) for row in tree["rows"]] == [
        ("create", 0, True),
        ("vectorize C j", 0, False),
        ("parallel C i", 1, True),
        ("unroll C j", 1, True),
    ]
    assert [row["is_here"] for row in tree["rows"]] == [False, False, False, True]
    assert tree["lanes"] == 2
    assert json.loads(json.dumps(tree)) == tree


def test_parents_come_first(blocked):
    seen = {None}
    for row in history_tree(blocked.history)["rows"]:
        assert row["parent"] in seen
        seen.add(row["id"])


def test_notes_are_text_and_spoken(plain):
    plain.node.notes["measured"] = 6.1
    row = history_tree(plain.history)["rows"][0]
    assert row["notes"] == {"measured": "6.1"}
    assert row["label"] == "create, measured 6.1, current state"


def test_many_branches_have_a_lane_each(plain, tensors):
    i = tensors[2].op.axis[0]
    for factor in (2, 4, 8):
        plain[tensors[2]].split(i, factor)
        plain.undo()
    tree = history_tree(plain.history)
    assert [row["lane"] for row in tree["rows"]] == [0, 0, 1, 2]
    assert tree["lanes"] == 3


class Measurement:
    """What a user's own note may be: something with a time."""

    seconds = 0.01123

    def __str__(self):
        return "11.2 ms ± 0.1 ms"


def test_a_row_has_a_short_step_and_a_time(plain, tensors):
    i, _ = tensors[2].op.axis
    outer, _ = plain[tensors[2]].split(i, 4)
    plain[tensors[2]].parallel(outer)
    plain.node.notes["measured"] = Measurement()
    first, split, parallel = history_tree(plain.history)["rows"]
    assert [row["short"] for row in (first, split, parallel)] == [
        "create",
        "split i 4",
        "parallel i.o",
    ]
    assert parallel["step"] == "parallel C i.outer"
    assert (parallel["seconds"], parallel["time"]) == (0.01123, "11.2 ms")
    assert (first["seconds"], first["time"]) == (None, "")


def test_a_step_of_one_of_several_stages_keeps_its_stage(blocked):
    rows = history_tree(blocked.history)["rows"]
    assert all(row["short"].split()[:2] == row["step"].split()[:2] for row in rows[2:])


class ForTarget:
    """A measurement that knows the target of its code."""

    def __init__(self, seconds, target):
        self.seconds, self.target = seconds, target

    def __str__(self):
        return f"{self.seconds} s"


def test_times_of_code_for_several_targets_name_them(plain, tensors):
    plain.node.notes["measured"] = ForTarget(0.5, "cpu")
    plain[tensors[2]].parallel(tensors[2].op.axis[0])
    assert [row["time"] for row in history_tree(plain.history, "cpu")["rows"]] == ["500 ms", ""]
    named = history_tree(plain.history, "x86-64-avx2")["rows"][0]
    assert named["time"] == "500 ms, cpu"
    assert named["notes"]["measured"] == "0.5 s, code for cpu"
    assert "measured 0.5 s, code for cpu" in named["label"]
    plain.node.notes["measured"] = ForTarget(0.25, "x86-64-avx2")
    for target, want in {
        "": ["500 ms, cpu", "250 ms, x86-64-avx2"], "cpu": ["500 ms", "250 ms, x86-64-avx2"],
    }.items():  # fmt: skip
        times = [row["time"] for row in history_tree(plain.history, target)["rows"]]
        assert times == want


def test_the_picture_has_short_words_that_stay_readable(plain, tensors):
    plain[tensors[2]].parallel(tensors[2].op.axis[0])
    plain.describe("rows")
    plain.node.notes["verified"] = "against an oracle of many words " * 5
    plain.node.notes["measured"] = Measurement()
    scene = history_scene(history_tree(plain.history))
    words = [mark["text"] for mark in scene["marks"] if mark["shape"] == "text"]
    assert words == ["create", "parallel C i   “rows”   11.2 ms"]
    assert scene["width"] < 400
    assert "oracle" in scene["table"]["rows"][1][3]
    plain.node.notes["wrong"] = "C[0] is 1, not 2"
    last = history_scene(history_tree(plain.history))["marks"][-1]
    assert last["text"].endswith("11.2 ms   wrong")
