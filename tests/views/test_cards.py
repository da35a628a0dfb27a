"""What core objects show of themselves in a notebook without widgets."""

import re

import pytest

import dlcompiler as dlc
from dlcompiler import ops, te
from dlcompiler.analysis import analyze_races
from dlcompiler.ir import Buffer, For, PrimFunc, Store, Var, const, index_const
from dlcompiler.measurement.comparison import Comparison
from dlcompiler.measurement.verification import Verified
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.runtime.timing import Paired, Timing
from dlcompiler.schedule import Stage
from dlcompiler.schedule.trace import Trace
from dlcompiler.schedule.verdict import Illegal, Legal, Pending
from dlcompiler.target import resolve
from dlcompiler.views.cards.card import card, card_html

HOSTILE = "<img src=x onerror=alert(1)>"
AVX2 = resolve("x86-64-avx2")
TIMING = Timing((0.0381, 0.0382, 0.0395), flops=2 * 1024**3)


def text_of(root):
    return " ".join(" ".join(root.itertext()).split())


@pytest.fixture
def shown(parsed):
    """Return the text of an object's HTML, after checks that hold for all of them."""

    def show(value):
        html = value._repr_html_()
        assert html == value._repr_html_()
        assert len(html.encode()) < 60_000
        assert not re.search(r"\bat 0x|object at", html)
        return text_of(parsed(html))

    return show


def test_a_stage(blocked, shown):
    text = shown(blocked[blocked.outputs[0]])
    assert "a stage that stores float32[64, 64] in global memory" in text
    assert "C[i, j] = C.local[i, j]" in text
    for path in ("i.outer", "j.outer", "i.inner", "j.inner"):
        assert path in text
    text = shown(Stage(blocked, "C.local"))
    assert "in local memory" in text
    assert "inside loop j.outer of C" in text
    assert "reduction" in text


def test_a_stage_without_loops(tensors, shown):
    A, _, C = tensors
    D = te.compute(C.shape, lambda i, j: C[i, j] + 1.0, name="D")
    s = dlc.create_schedule(D.op)
    assert shown(s[A]) == "A — an input, float32[64, 64]"
    E = te.compute(D.shape, lambda i, j: D[i, j] * 2.0, name="E")
    s = dlc.create_schedule(E.op)
    s[D].compute_inline()
    assert "inlined" in shown(s[D])


def test_operations(tensors, shown):
    A, _, C = tensors
    assert shown(A.op) == "A — 64 × 64, float32, an input"
    assert "C[i, j] += A[i, k]*B[k, j]" in shown(C.op)


def test_verdicts(plain, tensors, shown):
    (k,) = tensors[2].op.reduce_axis
    text = shown(plain.can("vectorize", k))
    assert "Illegal — a reduction axis cannot be vectorized" in text
    assert "semantic: it would change the result" in text
    assert "conflicts loop k of C" in text
    assert shown(Legal()) == "Legal — the step keeps the meaning of the program"
    assert "pending attach C" in shown(Pending("attach C"))


def test_a_verdict_is_text_whatever_it_says(shown):
    text = shown(Illegal("limit", HOSTILE, hint=HOSTILE, got=HOSTILE, because=HOSTILE))
    assert text.count(HOSTILE) == 4


def test_moves(plain, tensors, shown):
    moves, legal = plain.moves(tensors[2]), plain.legal_moves(tensors[2])
    assert isinstance(moves, tuple)
    text = shown(moves)
    assert f"{len(moves)} steps: {len(legal)} legal" in text
    assert f"✕ not legal ({len(moves) - len(legal)})" in text
    assert "a reduction axis cannot be vectorized (semantic)" in text
    assert "✕" not in shown(legal)
    assert repr(moves) == repr(tuple(moves))


def test_a_target(shown):
    text = shown(AVX2)
    assert "AVX2: 16 registers of 256 bit, 8 lanes of float32" in text
    for level in AVX2.caches:
        assert level.name in text
    assert "vector registers 512 B, L1d 32 KiB" in text
    assert "local 64 KiB" in text


def test_times(shown):
    text = shown(TIMING)
    assert "38.2 ms ± 350 µs, measured" in text
    assert "56.2 GFLOP/s" in text
    assert "3 samples" in text
    by_model = Provenance("predicted", "a model")
    assert "predicted by a model" in shown(Timing((0.5,), provenance=by_model))
    assert "each the mean of 8 calls" in shown(Timing((1.0, 1.0), batch=8))
    text = shown(Paired(TIMING, Timing((0.02,)), (1.9, 1.91, 1.95)))
    assert "a takes 1.9× (± 0.013) the time of b: b is the faster one" in text


def test_the_ticks_stand_where_their_times_are(parsed):
    from dlcompiler.views.cards.machines import samples_scene

    marks = samples_scene(TIMING)["marks"]
    x = [mark["x"] for mark in marks if mark["shape"] == "circle"]
    share = [(at - x[0]) / (x[2] - x[0]) for at in x]
    assert share == pytest.approx([0.0, 1 / 14, 1.0])


def test_a_verified_result(shown):
    text = shown(Verified(("numpy", "interpreter"), (4, 8), 7, 0.25))
    assert "the result is right, by numpy and interpreter" in text
    assert "largest error 25 % of the tolerance" in text
    assert "4 × 8" in text


def test_a_kernel(plain, tensors, shown):
    kernel = dlc.build(plain, tensors, name="matmul")
    text = shown(kernel)
    assert "matmul(A, B, C) — a kernel" in text
    assert "C float32[64, 64] output" in text
    assert "524 k floating-point operations, exact" in text
    for attribute in ("func", "llvm_ir", "source", "assembly"):
        assert attribute in text
        assert getattr(kernel, attribute) is not None
    assert "for i in range (64)" in text


def test_spaces_configs_and_operators(shown):
    operator = ops.operator("matmul")
    workload = operator.workload(m=64, n=64, k=64, dtype="float32")
    space = operator.space(workload, AVX2)
    text = shown(space)
    assert f"of which the rules allow {space.count}" in text
    for knob in space.knobs:
        assert knob.name in text
    for item in space.filters:
        assert item.rule in text
    config = operator.default_config(workload, AVX2)
    text = shown(config)
    assert f"tile_m {config['tile_m']}" in text
    for call in ("define(workload)", "reference(workload, seed)"):
        assert call in shown(operator)


def test_races(blocked, tensors, shown):
    i = blocked[tensors[2]].leaf_iter_vars[0]
    blocked[tensors[2]].parallel(i)
    text = shown(dlc.races(blocked))
    assert "Races of main — safe: 4 of 4 loops may run in any order" in text
    assert "parallel i.outer (C) ✓ safe" in text


def test_a_race(shown):
    i, C = Var("i"), Buffer("C", (4,), "float32")
    store = Store(C, (index_const(0),), const(1.0, "float32"))

    def report(kind):
        return analyze_races(PrimFunc("main", (C,), (C,), For(i, index_const(4), kind, store)))

    text = shown(report("parallel"))
    assert "violated: 0 of 1 loops may run in any order" in text
    assert "✕ violated C[0] is written" in text
    assert "no loop is parallel" in shown(report("serial"))


def test_a_comparison(shown):
    paired = Paired(TIMING, Timing((0.02,)), (1.9, 1.91, 1.95))
    text = shown(Comparison("one", "two", paired, f"-{HOSTILE}\n+b"))
    assert "one and two — a takes 1.9× (± 0.013) the time of b" in text
    assert f"-{HOSTILE} +b" in text


def test_a_trace(blocked, shown):
    text = shown(blocked.trace)
    assert text.startswith(f"Trace — {len(blocked.trace)} steps; ")
    for step in blocked.trace.steps:
        assert str(step) in text
    assert shown(Trace(())).startswith("Trace — 0 steps")


def test_cards_are_text(parsed):
    table = {"columns": [HOSTILE], "rows": [[HOSTILE]]}
    model = card(HOSTILE, HOSTILE, facts=[(HOSTILE, HOSTILE)], tables=[(HOSTILE, table)],
                 code=HOSTILE)  # fmt: skip
    assert text_of(parsed(card_html(model))).count(HOSTILE) == 8
