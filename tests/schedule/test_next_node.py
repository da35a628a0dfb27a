import threading

from dlcompiler import te
from dlcompiler.schedule import create_schedule


def schedule():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] + 1.0, name="B")
    return create_schedule(B.op), B


def test_nothing_follows_the_last_state():
    s, _ = schedule()
    assert s.next_node is None


def test_redo_goes_to_the_state_that_was_left_last():
    s, B = schedule()
    s[B].vectorize(B.op.axis[1])
    s.undo()
    s[B].parallel(B.op.axis[0])
    left = s.node
    s.undo()
    assert s.next_node is left
    s.redo()
    assert s.node is left


def test_of_several_states_that_were_not_left_none_is_next():
    s, B = schedule()
    s[B].vectorize(B.op.axis[1])
    s.undo()
    s[B].parallel(B.op.axis[0])
    s.undo()
    assert s.fork("other").next_node is None


def test_the_only_state_that_follows_is_next():
    s, B = schedule()
    s[B].vectorize(B.op.axis[1])
    made = s.node
    s.undo()
    assert s.fork("other").next_node is made


def test_the_lock_may_be_held_while_steps_are_applied():
    s, B = schedule()
    with s.lock:
        s[B].vectorize(B.op.axis[1])
    assert s.node.title() == "vectorize B j"


def test_the_cursor_stands_still_while_the_lock_is_held():
    s, B = schedule()
    s[B].vectorize(B.op.axis[1])
    here = s.node
    other = threading.Thread(target=s.undo)
    with s.lock:
        other.start()
        other.join(0.1)
        assert s.node is here
    other.join(30)
    assert s.node is here.parent
