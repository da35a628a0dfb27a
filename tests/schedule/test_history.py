"""The history: undo, redo, jump, fork; states are shared, axes stay the same, nothing is lost."""

import pytest


def test_undo_and_redo_come_back_to_the_same_state(matmul, nest):
    plain = matmul.s.state
    matmul.s[matmul.C].split(matmul.i, 2)
    split = matmul.s.state
    matmul.s.undo()
    assert matmul.s.state is plain
    matmul.s.redo()
    assert matmul.s.state is split


def test_the_same_step_twice_gives_the_same_state_and_axes(matmul):
    first = matmul.s[matmul.C].split(matmul.i, 2)
    state = matmul.s.state
    matmul.s.undo()
    second = matmul.s[matmul.C].split(matmul.i, 2)
    assert matmul.s.state is state
    assert second[0] is first[0]
    assert second[1] is first[1]


def test_the_same_cache_twice_gives_the_same_tensor(matmul):
    first = matmul.s.cache_write(matmul.C, "local")
    matmul.s.undo()
    assert matmul.s.cache_write(matmul.C, "local") is first


def test_states_never_change(matmul, nest):
    plain, before = matmul.s.state, nest(matmul)
    matmul.s[matmul.C].tile(matmul.i, matmul.j, 2, 3)
    matmul.s[matmul.C].unroll(matmul.k)
    assert plain.stages[2].leaves == (matmul.i, matmul.j, matmul.k)
    matmul.s.undo()
    matmul.s.undo()
    assert nest(matmul) == before


def test_undo_keeps_what_was_undone(matmul):
    matmul.s[matmul.C].split(matmul.i, 2)
    gone = matmul.s.state.id
    matmul.s.undo()
    matmul.s[matmul.C].split(matmul.i, 4)
    here = matmul.s.state.id
    matmul.s.jump(gone)
    assert str(matmul.s.trace) == "split C i 2"
    matmul.s.jump(here[:8])
    assert str(matmul.s.trace) == "split C i 4"


def test_redo_follows_the_branch_that_was_left_last(matmul):
    matmul.s[matmul.C].split(matmul.i, 2)
    matmul.s.undo()
    matmul.s[matmul.C].split(matmul.i, 4)
    matmul.s[matmul.C].unroll(matmul.k)
    last = matmul.s.state
    matmul.s.undo()
    matmul.s.undo()
    matmul.s.redo()
    matmul.s.redo()
    assert matmul.s.state is last


def test_redo_after_a_jump_follows_where_the_jump_came_to(matmul):
    matmul.s[matmul.C].split(matmul.i, 2)
    first = matmul.s.state
    matmul.s.undo()
    matmul.s[matmul.C].split(matmul.i, 4)
    matmul.s.jump(first.id)
    matmul.s.undo()
    matmul.s.redo()
    assert matmul.s.state is first


def test_a_fork_shares_history_and_axes_but_not_the_cursor(matmul):
    outer, _ = matmul.s[matmul.C].split(matmul.i, 2)
    fork = matmul.s.fork("try")
    fork[matmul.C].parallel(outer)
    matmul.s[matmul.C].unroll(outer)
    assert str(fork.trace) == "split C i 2\nparallel C i.outer"
    assert str(matmul.s.trace) == "split C i 2\nunroll C i.outer"
    assert fork.name == "try"
    matmul.s.jump(fork.state.id)
    assert matmul.s.state is fork.state


def test_a_stage_acts_on_the_cursor_of_its_schedule(matmul):
    stage = matmul.s[matmul.C]
    outer, _ = stage.split(matmul.i, 2)
    assert stage.leaf_iter_vars[0] is outer
    matmul.s.undo()
    assert stage.leaf_iter_vars[0] is matmul.i
    assert outer not in stage.all_iter_vars


def test_the_tree_marks_the_place(matmul, golden):
    matmul.s[matmul.C].split(matmul.i, 2)
    matmul.s[matmul.C].unroll(matmul.k)
    matmul.s.undo()
    matmul.s[matmul.C].parallel(matmul.j)
    matmul.s.undo()
    matmul.s.undo()
    matmul.s[matmul.C].tile(matmul.i, matmul.j, 2, 3)
    matmul.s.undo()
    matmul.s.redo()
    matmul.s.node.notes["measured"] = "1.5 ms"
    golden("tree", repr(matmul.s.history))


def test_ids_of_axes_say_which_state_made_them(matmul):
    outer, inner = matmul.s[matmul.C].split(matmul.i, 2)
    assert (outer.id, inner.id) == (f"{matmul.s.state.id}/0", f"{matmul.s.state.id}/1")
    assert matmul.s.history.history.step_text(outer.id) == "split C i 2"


def test_refuses_to_undo_nothing(matmul, refusal):
    assert refusal(matmul.s.undo) == "undo: there is no step to undo"


def test_refuses_to_redo_nothing(matmul, refusal):
    assert refusal(matmul.s.redo) == (
        "redo: there is no step to redo\n"
        "  hint      s.history shows all states; s.jump(id) goes to one"
    )


def test_refuses_to_redo_when_several_steps_lead_on(matmul, refusal):
    fork = matmul.s.fork("other")
    fork[matmul.C].split(matmul.i, 2)
    fork.undo()
    fork[matmul.C].split(matmul.i, 4)
    assert refusal(matmul.s.redo) == (
        "redo: several steps follow this state\n"
        "  hint      s.history shows all states; s.jump(id) goes to one"
    )


@pytest.mark.parametrize("id", ["zzz", "", 5, None])
def test_refuses_a_state_that_does_not_exist(matmul, refusal, id):
    assert refusal(matmul.s.jump, id) == (
        f"state {id!r}: no such state in the history\n  expected  {matmul.s.state.id[:8]}"
    )


def test_refuses_the_beginning_of_several_ids(matmul, refusal):
    for factor in range(1, 18):  # of 17 states, two begin with the same hexadecimal digit
        matmul.s[matmul.C].split(matmul.i, factor)
        matmul.s.undo()
    digits = [node.id[0] for node in matmul.s.history.history.walk()]
    twice = next(digit for digit in digits if digits.count(digit) > 1)
    assert refusal(matmul.s.jump, twice).startswith(
        f"state {twice!r}: several states begin like this\n  expected  "
    )


def test_a_named_state_is_found_by_its_name(matmul):
    matmul.s[matmul.C].split(matmul.i, 4)
    matmul.s.describe("tiled  rows", "a note\nof two lines ")
    assert (matmul.s.node.name, matmul.s.node.note) == ("tiled rows", "a note\nof two lines")
    assert "[tiled rows]" in repr(matmul.s.history)
    matmul.s.undo()
    matmul.s.jump("tiled rows")
    assert matmul.s.node.title() == "split C i 4"
    matmul.s.describe(name="")
    assert (matmul.s.node.name, matmul.s.node.note) == ("", "a note\nof two lines")


def test_refuses_a_name_that_another_state_has(matmul, refusal):
    matmul.s.describe("start")
    matmul.s[matmul.C].split(matmul.i, 4)
    assert refusal(matmul.s.describe, "start", "a note") == (
        "name a state: another state has this name\n"
        "  got       'start'\n"
        "  because   the state after create is called so"
    )
    assert matmul.s.node.note == ""


def test_refuses_a_name_that_is_no_short_line(matmul, refusal):
    for name in ("x" * 61, "a\x1bb"):
        assert "a name is one short line" in refusal(matmul.s.describe, name)
    assert "the note is too long" in refusal(matmul.s.describe, "good", "x" * 3000)
    assert matmul.s.node.name == ""


def test_another_state_gets_a_name_and_listeners_are_told(matmul, refusal):
    matmul.s[matmul.C].split(matmul.i, 4)
    heard = []
    matmul.s.listeners.append(lambda s: heard.append([node.name for node in s.node.path()]))
    matmul.s.describe("tiled")
    matmul.s.describe("plain", state=matmul.s.history.history.root.id)
    assert heard == [["", "tiled"], ["plain", "tiled"]]
    assert "no such state" in refusal(matmul.s.describe, "x", state="nothing")
