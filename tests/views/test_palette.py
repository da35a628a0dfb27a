import json

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.state import Step
from dlcompiler.schedule.trace import decode
from dlcompiler.views import loop_tree, palette
from dlcompiler.views.moves.palette import MOST_SUGGESTIONS, RANK


def items(view, part="loop"):
    return {
        (item["primitive"], item["text"]): item for group in view[part] for item in group["items"]
    }


def test_moves_of_a_loop(plain):
    view = palette(plain, "C/j")
    assert view["title"] == "loop j of C"
    assert list(items(view)) == [
        ("split", "split"),
        ("split", "in parts"),
        ("tile", "tile i × j"),
        ("reorder", "outward, past i"),
        ("reorder", "inward, past k"),
        ("fuse", "with i around it"),
        ("fuse", "with k inside it"),
        ("vectorize", "vectorize"),
        ("unroll", "unroll"),
        ("parallel", "parallel"),
        ("pragma", "auto_unroll_max_step"),
        ("prefetch", "prefetch of A"),
        ("prefetch", "prefetch of B"),
        ("tensorize", "with gemv_f32_64x64"),
        ("storage_align", "rows padded, offset 0"),
        ("storage_align", "rows padded, offset 1"),
        ("align_extent", "rows of whole vectors"),
    ]
    assert list(items(view, "stage")) == [
        ("cache_read", "A in global, for C"),
        ("cache_read", "A in local, for C"),
        ("cache_read", "B in global, for C"),
        ("cache_read", "B in local, for C"),
        ("cache_write", "in global"),
        ("cache_write", "in local"),
        ("compute_root", "in loops of its own"),
        ("compute_inline", "inline"),
        ("set_scope", "in global"),
        ("set_scope", "in local"),
        ("double_buffer", "double_buffer"),
        ("rolling_buffer", "rolling_buffer"),
        ("transform_layout", "[j, i]"),
        ("transform_layout", "[j // 4, i, j % 4]"),
    ]
    assert json.loads(json.dumps(view)) == view


def test_groups(plain):
    view = palette(plain, "C/j")
    assert [group["name"] for group in view["loop"]] == [
        "split", "tile", "reorder", "fuse", "annotate", "storage",
    ]  # fmt: skip
    assert [group["name"] for group in view["stage"]] == [
        "cache_read", "cache_write", "compute", "storage",
    ]  # fmt: skip
    assert items(view)["split", "split"]["about"] == "Split a loop in two nested ones."


def test_an_illegal_move_says_why(plain):
    item = items(palette(plain, "C/k"))["vectorize", "vectorize"]
    assert (item["status"], item["kind"]) == ("illegal", "semantic")
    assert item["reason"] == "a reduction axis cannot be vectorized"
    assert "same element" in item["because"]
    assert item["got"] == "axis k of stage C (reduction, extent 64)"
    assert item["hint"] == "vectorize j, a data axis"


def test_parameters_of_a_split(plain):
    (parameter,) = items(palette(plain, "C/i"))["split", "split"]["parameters"]
    assert parameter["name"] == "factor"
    assert parameter["suggested"] == [2, 4, 8, 16, 32]
    assert parameter["default"] == 32
    assert parameter["costs"][3] == "16 divides 64: 4 blocks of 16, no tail"


def test_what_suggestions_cost_where_none_divides():
    A = te.placeholder((31,), name="A")
    B = te.compute((31,), lambda i: A[i] + 1.0, name="B")
    (parameter,) = items(palette(create_schedule(B.op), "B/i"))["split", "split"]["parameters"]
    assert parameter["costs"][-1] == (
        "8 does not divide 31: 4 blocks of 8, 1 of 32 iterations guarded, 3 %"
    )


def test_legal_moves_come_first(blocked):
    for row in loop_tree(blocked)["rows"]:
        view = palette(blocked, row["key"])
        for part in ("loop", "stage"):
            best = [min(RANK[item["status"]] for item in g["items"]) for g in view[part]]
            assert best == sorted(best)
            for group in view[part]:
                ranks = [RANK[item["status"]] for item in group["items"]]
                assert ranks == sorted(ranks)


def test_what_stands_in_the_way_is_in_the_tree(blocked):
    keys = {row["key"] for row in loop_tree(blocked)["rows"]}
    conflicts = set()
    for key in keys:
        view = palette(blocked, key)
        for item in [*items(view).values(), *items(view, "stage").values()]:
            conflicts.update(item["conflicts"])
            assert not item["conflicts"] or item["status"] == "illegal"
    assert {"C.local/k.outer", "C.local//body", "C"} <= conflicts
    assert conflicts <= keys


def test_only_some_primitives(plain):
    view = palette(plain, "C/j", ("split", "parallel"))
    assert [(group["name"], len(group["items"])) for group in view["loop"]] == [
        ("split", 2),
        ("annotate", 1),
    ]
    assert view["stage"] == []


def test_suggestions_are_few():
    A = te.placeholder((5040,), name="A")
    B = te.compute((5040,), lambda i: A[i] + 1.0, name="B")
    (parameter,) = items(palette(create_schedule(B.op), "B/i"))["split", "split"]["parameters"]
    assert len(parameter["suggested"]) == MOST_SUGGESTIONS
    assert parameter["default"] == 30


def test_what_is_done_already_is_neither_legal_nor_illegal(plain, tensors):
    plain[tensors[2]].vectorize(tensors[2].op.axis[1])
    view = palette(plain, "C/j")
    done = items(view)["vectorize", "vectorize"]
    assert (done["status"], done["reason"]) == ("done", "C.j is vectorized already")
    assert items(view, "stage")["compute_root", "in loops of its own"]["status"] == "done"


def test_a_pending_move_says_what_it_will_owe(blocked):
    item = items(palette(blocked, "C/j.outer"))["split", "split"]
    assert item["status"] == "pending"
    assert "no longer a loop" in item["reason"]


def test_stages_that_could_be_computed_inside_a_loop(blocked):
    view = items(palette(blocked, "C/i.outer"), "stage")
    assert view["compute_at", "C.local at C.i.outer"]["status"] == "pending"
    view = items(palette(blocked, "C/j.outer"), "stage")
    assert view["compute_at", "C.local at C.j.outer"]["status"] == "done"


def test_moves_of_a_stage(blocked):
    view = palette(blocked, "C.local")
    assert view["title"] == "stage C.local"
    assert view["loop"] == []
    assert ("compute_at", "C.local at C.i.outer") in items(view, "stage")
    assert ("compute_inline", "inline") in items(view, "stage")


@pytest.mark.parametrize("key", [None, "", "X/i", "C/nothing", "A", "C//body"])
def test_a_key_of_nothing_gives_an_empty_palette(plain, key):
    assert palette(plain, key) == {
        "chosen": None, "title": "choose a loop", "loop": [], "stage": [],
    }  # fmt: skip


def test_every_item_is_a_step_that_does_what_it_says(blocked):
    """A legal item can be applied as it stands; an illegal one is refused when tried."""
    start, tried = blocked.node.id, 0
    for key in [row["key"] for row in loop_tree(blocked)["rows"]]:
        view = palette(blocked, key)
        for item in [*items(view).values(), *items(view, "stage").values()]:
            data = item["step"]
            chosen = {p["name"]: p["default"] for p in item["parameters"]}
            step = Step(data["primitive"], data["stage"], {**data["args"], **chosen})
            args = decode(blocked.state, step)
            attempt = blocked.attempt(step.primitive, step.stage, args)
            assert bool(attempt.verdict) == (item["status"] != "illegal"), item["key"]
            tried += 1
    assert tried > 50
    assert blocked.node.id == start


def test_loops_without_iterations_have_moves():
    A = te.placeholder((0, 4), name="A")
    B = te.compute((0, 4), lambda i, j: A[i, j] * 2.0, name="B")
    for key in ("B/i", "B/j"):
        found = items(palette(create_schedule(B.op), key))
        assert all(0 not in each["suggested"] for item in found.values()
                   for each in item["parameters"])  # fmt: skip
