"""The picture of dependences against a plain run of the nest, and what it says in words."""

import itertools
import json

import pytest

from dlcompiler import te
from dlcompiler.analysis.values import evaluate
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import (
    Buffer,
    For,
    If,
    Load,
    PrimFunc,
    Seq,
    Store,
    Var,
    const,
    index_const,
)
from dlcompiler.ir.stmt import StepRef
from dlcompiler.pipeline import lower
from dlcompiler.pipeline.checks import default_args
from dlcompiler.schedule import Step, create_schedule
from dlcompiler.views import loop_tree, preview
from dlcompiler.views.loops.dependence_arrows import arrows_of, window_of
from dlcompiler.views.loops.dependence_list import dependence_list
from dlcompiler.views.loops.dependence_scene import dependence_scene, entry_scene
from dlcompiler.views.moves.conflict import conflict
from tests.analysis.test_footprint import random_schedule
from tests.views.test_iteration_space import prefix_sums


def matmul(n=8):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return create_schedule(C.op), [A, B, C]


def shown(s, args, key=None):
    return dependence_scene(lower(s, args, simple_mode=True), loop_tree(s), key)


def words(scene):
    return [(row[1], row[4], row[5], row[6]) for row in scene["table"]["rows"]]


def test_a_matrix_product():
    scene = shown(*matmul(), "C/k")
    assert scene["summary"] == (
        "Dependences of C: carried by k, of a reduction: any order, but not at the same time; "
        "none carried by i, j."
    )
    assert words(scene)[0] == (
        "flow, anti, output (reduction)", "(0, 0, <)", "(0, 0, 1)",
        "C[i, j] updated at k is updated again at k + 1, and at later iterations of k",
    )  # fmt: skip
    assert json.loads(json.dumps(scene)) == scene


def test_a_split_reduction_goes_back_in_its_inner_loop():
    s, args = matmul()
    s[args[-1]].split(s[args[-1]].op.reduce_axis[0], 4)
    scene = shown(s, args, "C/k.inner")
    nearest = {row[2] for row in words(scene) if "reduction" in row[0]}
    assert nearest == {"(0, 0, 0, 1)", "(0, 0, 1, -3)"}
    arrows = [
        mark for mark in scene["marks"] if mark["role"] == "curve" and mark["shape"] == "path"
    ]
    assert [mark["keys"] for mark in arrows] == [["C/k.outer"], ["C/k.inner"]]


def recurrence():
    n = 6
    X = te.placeholder((n, 4), name="X")
    state = te.placeholder((n, 4), name="state")
    init = te.compute((1, 4), lambda t, i: X[0, i], name="init")
    update = te.compute((n, 4), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    S = te.scan(init, update, state, inputs=[X], name="S")
    return create_schedule(S.op), [X, S]


def test_a_scan_carries_a_flow_along_its_time():
    scene = shown(*recurrence(), "update")
    assert any(row[0].startswith("flow") and row[2] == "(1, 0)" for row in words(scene))
    assert scene["summary"] == (
        "Dependences of update: carried by idx: the iterations must keep their order; "
        "none carried by i."
    )


@pytest.mark.parametrize(("stage", "axis"), [("S", "idx"), ("update", "t")])
def test_the_time_of_a_recurrence_is_refused_for_its_flow(stage, axis):
    s, args = recurrence()
    found = refused(s, args, Step("parallel", stage, {"axis": axis}))
    assert (found["kind"], found["vector"], found["loops"]) == (
        "flow",
        [1, 0],
        ["S/idx", "update/i"],
    )
    assert (found["source"], found["sink"]) == ("S[idx + 1, i]", "S[idx, i]")


def test_a_reduction_bound_to_blocks_is_refused_for_its_updates():
    s, args = matmul()
    found = refused(s, args, Step("bind", "C", {"axis": "k", "thread": "blockIdx.x"}))
    assert found["vector"] == [0, 0, "<"]


def test_a_stage_without_loops_is_refused():
    A = te.placeholder((1,), name="A")
    total = te.compute((), lambda: A[0] + 1.0, name="total")
    with pytest.raises(ScheduleError) as caught:
        shown(create_schedule(total.op), [A, total])
    assert str(caught.value) == ("draw the dependences: the stage has no loops\n  got       total")


# -- arrows ---------------------------------------------------------------------------------------

i, j = Var("i"), Var("j")
X = Buffer("X", (60, 60), "float32")
A2 = Buffer("X", (40,), "float32")
ONE = const(1.0, "float32")
BODIES = {
    "shift": Store(X, (i + 1, j), Load(X, (i, j + 2)) * 2, (StepRef("", "X"),)),
    "scaled": Store(X, (i * 2, j), Load(X, (i + 3, j)) * 2, (StepRef("", "X"),)),
    "diagonal": Store(X, (i + j, i), Load(X, (i + j, j)) * 2, (StepRef("", "X"),)),
    "guarded": If(i >= j, Store(X, (i, j), Load(X, (j, i)) * 2, (StepRef("", "X"),))),
    "two": Seq((
        Store(X, (i, j), ONE, (StepRef("", "X"),)),
        Store(X, (i, j + 3), Load(X, (j, i)) * 2, (StepRef("", "X"),)),
    )),
}  # fmt: skip
NO_TREE = {"rows": []}


@pytest.mark.parametrize("name", BODIES)
def test_the_arrows_are_those_of_a_plain_run(name):
    body = BODIES[name]
    func = PrimFunc("main", (X,), (X,), nested(body, (i, 5), (j, 7)))
    entries = dependence_list(func, NO_TREE, "X")
    window = window_of(entries[0].loops)
    got = {arrow for entry in entries for arrow in arrows_of(entry, window)}
    assert got == run(body)
    for entry in entries:
        nearest = entry.vector.nearest
        if entry.loop is not None:
            assert nearest == min(
                tuple(b - a for a, b in zip(*arrow, strict=True))
                for arrow in arrows_of(entry, window)
            )


def test_the_small_picture_stands_where_the_dependence_is():
    body = If(i >= 3, BODIES["shift"])
    func = PrimFunc("main", (X,), (X,), nested(body, (i, 5), (j, 7)))
    (entry,) = [e for e in dependence_list(func, NO_TREE, "X") if e.loop]
    scene = entry_scene(entry, entry.loops[1:])
    assert scene["summary"].startswith("X[i + 1, j] written at i, j is read as X[i, j + 2]")
    assert entry.vector.example.first[entry.loops[0]] == 3
    whole = entry_scene(entry, entry.loops)
    assert any(mark["role"] == "curve" for mark in whole["marks"])


def nested(body, *loops):
    for var, extent in reversed(loops):
        body = For(var, index_const(extent), "serial", body)
    return body


def run(body):
    """For each two accesses, the arrows from an iteration to the next with the same element."""
    match body:
        case Seq(statements):
            stores = statements
        case If(_, then, _):
            stores = [then]
        case _:
            stores = [body]
    accesses = []
    for store in stores:
        if isinstance(store.value, Load) or hasattr(store.value, "a"):
            accesses.append((store.value.a.indices, False))
        accesses.append((store.indices, True))
    points = [
        point for point in itertools.product(range(5), range(7))
        if not isinstance(body, If) or point[0] >= point[1]
    ]  # fmt: skip
    arrows = set()
    for (first, writes), (second, also) in itertools.product(accesses, repeat=2):
        if not (writes or also):
            continue
        for point in points:
            same = [p for p in points if p > point and at(second, p) == at(first, point)]
            arrows |= {(point, min(same))} if same else set()
    return arrows


def at(indices, point):
    return tuple(evaluate(index, dict(zip((i, j), point, strict=True))) for index in indices)


# -- refused steps --------------------------------------------------------------------------------


def last_of():
    """A reduction whose result is its last value: its order matters."""
    A = te.placeholder((4, 4, 4), name="A")
    k, l = te.reduce_axis((0, 4), name="k"), te.reduce_axis((0, 4), name="l")  # noqa: E741
    last = te.comm_reducer(lambda x, y: y, lambda dtype: te.const(0, dtype), name="last")
    C = te.compute((4,), lambda i: last(A[i, k, l], axis=[k, l]), name="C")
    return create_schedule(C.op), [A, C]


def test_a_reduction_whose_order_matters_is_not_said_to_have_none():
    assert shown(*last_of())["summary"] == (
        "Dependences of C: carried by k, l, of a reduction: whether the order matters depends on "
        "its reducer; none carried by i."
    )


def test_a_reduction_to_several_values_may_change_its_order():
    A, k = te.placeholder((4, 8), name="A"), te.reduce_axis((0, 8), name="k")
    best, value = te.compute((4,), lambda i: te.argmax(A[i, k], k), name="T")
    s = create_schedule(best.op)
    outer, inner = s[best].split(k, 4)
    assert s.can("reorder", inner, outer)
    scene = shown(s, [A, best, value])
    assert scene["summary"] == (
        "Dependences of T: carried by k.outer, k.inner, of a reduction: whether the order matters "
        "depends on its reducer; none carried by i."
    )
    heads = [mark["text"] for mark in scene["marks"] if "T.v0 (" in mark.get("text", "")]
    assert heads
    assert not any(head.endswith("nearest ") for head in heads)


def test_all_loops_of_a_script_are_named():
    A = te.placeholder((16,), name="A")
    B = prefix_sums(A)
    scene = shown(create_schedule(B.op), [A, B])
    assert scene["summary"] == (
        "Dependences of prefix_sums: carried by i: the iterations must keep their order."
    )


def test_what_is_not_known_is_said_to_be_unknown():
    index, A = te.placeholder((8,), "int32", name="I"), te.placeholder((8,), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((8,), lambda i: te.sum(A[index[k]], axis=k), name="B")
    assert "none carried by i" in shown(create_schedule(B.op), [index, A, B])["summary"]
    n = Buffer("N", (40,), "int32")
    where = Load(n, (i,)).astype("index")
    body = Store(A2, (where,), ONE, (StepRef("", "X", "i"),))
    loop = For(i, index_const(4), "serial", body, (StepRef("", "X", "i"),))
    tree = {"rows": [{"key": "X", "type": "stage", "stage": "X", "depth": 0, "axis": ""}]}
    scene = dependence_scene(PrimFunc("main", (n, A2), (A2,), loop), tree, "X")
    assert scene["summary"] == "Dependences of X: perhaps carried by i."
    assert "may touch what a later iteration of i touches: it depends on" in words(scene)[0][3]


def test_a_program_with_symbols_has_its_order_in_words():
    n = te.var("n")
    A, k = te.placeholder((n,), name="A"), te.reduce_axis((0, n), name="k")
    C = te.compute((4,), lambda i: te.sum(A[k], axis=k), name="C")
    s = create_schedule(C.op)
    s[C].split(k, nparts=2)
    scene = shown(s, [A, C])
    assert "carried by k.outer, k.inner, of a reduction: any order" in scene["summary"]
    assert words(scene)[0][1:] == (
        "(0, 1, *)", "", "C[i] updated in an iteration of k.outer is updated again in a later one"
    )  # fmt: skip


def refused(s, args, step):
    view = preview(s, step)
    assert view["status"] == "illegal"
    return conflict(lower(s, args, simple_mode=True), loop_tree(s), view)


@pytest.mark.parametrize("primitive", ["parallel", "vectorize"])
def test_a_refused_annotation_shows_its_dependence(primitive):
    s, args = matmul()
    found = refused(s, args, Step(primitive, "C", {"axis": "k"}))
    assert (found["loops"], found["vector"]) == (["C/i", "C/j", "C/k"], [0, 0, "<"])
    assert found["nearest"] == [0, 0, 1]
    assert (found["source"], found["sink"]) == ("C[i, j]", "C[i, j]")
    assert any(mark["role"] == "curve" for mark in found["scene"]["marks"])
    assert json.loads(json.dumps(found)) == found


def test_a_refused_reorder_shows_what_would_go_backwards():
    s, args = last_of()
    found = refused(s, args, Step("reorder", "C", {"axes": ["l", "k"]}))
    assert found["nearest"] == [0, 1, -3]
    assert (found["first"], found["second"]) == (
        {"C/i": 0, "C/k": 0, "C/l": 3},
        {"C/i": 0, "C/k": 1, "C/l": 0},
    )
    assert found["example"] == "C[0] at i=0, k=0, l=3, and at i=0, k=1, l=0"
    arrows = [mark for mark in found["scene"]["marks"] if mark["role"] == "curve"]
    assert len(arrows) == 1


def test_a_step_refused_for_its_structure_has_no_dependence():
    s, args = matmul()
    s[args[-1]].parallel(s[args[-1]].op.axis[0])
    assert refused(s, args, Step("vectorize", "C", {"axis": "i"})) is None


def test_a_reduction_of_one_iteration_is_not_said_to_write_twice():
    A, k = te.placeholder((4, 1), name="A"), te.reduce_axis((0, 1), name="k")
    C = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="C")
    s = create_schedule(C.op)
    for primitive, done in (("parallel", "parallel"), ("vectorize", "vectorized")):
        step = Step(primitive, "C", {"axis": "k"})
        view = preview(s, step)
        assert (view["kind"], view["reason"]) == (
            "structural", f"a reduction axis cannot be {done}",
        )  # fmt: skip
        assert view["because"] == "it has one iteration: there is nothing to run at the same time"
        assert conflict(lower(s, [A, C], simple_mode=True), loop_tree(s), view) is None


def test_a_distance_that_varies_is_said_to_be_the_nearest():
    n = 6
    X, state = te.placeholder((n, 4), name="X"), te.placeholder((n, 4), name="state")
    init = te.compute((1, 4), lambda t, i: X[0, i], name="init")
    update = te.compute((n, 4), lambda t, i: state[t - 1, 3 - i] + X[t, i], name="update")
    S = te.scan(init, update, state, inputs=[X], name="S")
    rows = words(shown(create_schedule(S.op), [X, S], "update"))
    assert rows[0][1:] == (
        "(1, !=)", "(1, -3)",
        "S[idx + 1, i] written at idx, i is read as S[idx, -i + 3] at idx + 1; the nearest at "
        "idx + 1, i - 3",
    )  # fmt: skip
    s, args = matmul()
    s[args[-1]].split(s[args[-1]].op.reduce_axis[0], 4)
    assert words(shown(s, args, "C/k.inner"))[0][3] == (
        "C[i, j] updated at k.outer, k.inner is updated again at k.outer + 1; the nearest at "
        "k.outer + 1, k.inner - 3"
    )


def steps_of(s):
    """Each parallel, vectorize, and exchange of two loops of each stage."""
    for stage in (each.state for each in s.stages if not each.state.is_placeholder):
        paths = [stage.paths[leaf] for leaf in stage.leaves]
        for path, name in itertools.product(paths, ("parallel", "vectorize")):
            yield Step(name, stage.name, {"axis": path})
        for axes in itertools.combinations(paths, 2):
            yield Step("reorder", stage.name, {"axes": axes[::-1]})


def is_broken(found, step):
    """Whether the nearest source and sink of a conflict would change places, or run at once."""
    distances = dict(zip(found["loops"], found["nearest"], strict=True))
    if step.primitive == "reorder":
        inner, outer = (f"{step.stage}/{path}" for path in step.args["axes"])
        swapped = {outer: inner, inner: outer}
        after = [distances[swapped.get(loop, loop)] for loop in distances]
        return next(n for n in after if n) < 0
    carrier = next(loop for loop, n in distances.items() if n)
    return carrier == f"{step.stage}/{step.args['axis']}"


@pytest.mark.campaign
@pytest.mark.parametrize("first", [0, 15])
def test_every_arrow_at_a_refused_step_forbids_it(first):
    schedules = [random_schedule(seed) for seed in range(first, first + 15)]
    seen = 0
    for s, _ in (last_of(), matmul(), *((s, None) for s in schedules)):
        func = lower(s, default_args(s), simple_mode=True)
        for step in steps_of(s):
            view = preview(s, step)
            found = conflict(func, loop_tree(s), view)
            if found is not None:
                assert view["kind"] == "semantic", step
                assert is_broken(found, step), (step, found)
                seen += 1
    assert seen > 8


@pytest.mark.parametrize("n", [16, 256, 1_000_000])
def test_the_last_number_of_a_loop_is_inside_the_picture(n):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="reduced")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    func, tree = lower(s, [A, B, C], simple_mode=True), loop_tree(s)
    (entry,) = [e for e in dependence_list(func, tree, "C") if e.vector and e.moving]
    scene = entry_scene(entry, entry.loops[1:])
    (last,) = [m for m in scene["marks"] if m["shape"] == "text" and m["text"] == f"… {n - 1:,}"
               and m["y"] < 40]  # fmt: skip
    assert last["x"] + 7 * len(last["text"]) <= scene["width"]
