"""Kernels that are computed again in their readers, and siblings that become one kernel."""

from pathlib import Path

import pytest

from dlcompiler import graph
from dlcompiler.graph import op, var
from dlcompiler.graph.ir import Function, If, Module, Tuple, as_expr
from dlcompiler.graph.passes import FusionOptions, fuse_ops
from dlcompiler.graph.passes.fusion import moved_bytes
from tests.graph import fusion_table
from tests.graph.passes.fusion.test_relay_cases import kernels
from tests.graph.passes.fusion.test_rows import fused, rule_of

RECOMPUTE = FusionOptions(recompute=True)
SIBLINGS = FusionOptions(siblings=True)
X = var("x", (16, 8))


def conv(data, name):
    return op.nn.conv2d(data, var(f"{name}_w", (4, 4, 3, 3)), padding=1, name=name)


# -- recompute -------------------------------------------------------------------------------------


def test_a_cheap_producer_is_computed_in_each_reader():
    shared = op.nn.relu(X, name="a")
    out = Tuple((op.sqrt(shared, name="b"), op.sum(shared, axis=1, name="c")))
    assert kernels(fused(out, FusionOptions())) == [["relu"], ["sqrt"], ["sum"]]
    after = fused(out, RECOMPUTE)
    assert kernels(after) == [["relu", "sqrt"], ["relu", "sum"]]
    assert rule_of(after, "a", "b") == rule_of(after, "a", "c") == "recomputed"
    assert [d.verdict for d in after.decisions()] == ["fused", "fused"]
    assert set(after.calls()) == {"a", "a.again", "b", "c"}
    # relu's 512 bytes are not written, nor read twice; x is read twice instead of once.
    assert sum(d.effect.bytes for d in after.decisions()) == 512 * 2
    assert sum(d.effect.kernels for d in after.decisions()) == 1


def test_the_effect_is_that_of_the_bytes_that_are_moved():
    small = op.add(var("c", (8,)), var("d", (8,)), name="s")
    shared = op.broadcast_to(small, shape=(16, 8), name="a")
    out = Tuple((op.sqrt(shared, name="b"), op.tanh(shared, name="c"), op.exp(shared, name="e")))
    before, after = fused(out, FusionOptions()), fused(out, RECOMPUTE)
    saved = sum(d.effect.bytes for d in after.decisions() if d.rule == "recomputed")
    assert saved == moved_bytes(before) - moved_bytes(after) > 0


def test_chains_are_computed_again_as_a_whole():
    first = op.nn.relu(X, name="a")
    second = op.negative(first, name="b")
    out = Tuple((op.tanh(first), op.sqrt(second), op.exp(second)))
    after = fused(out, RECOMPUTE)
    assert kernels(after) == [
        ["relu", "tanh"], ["relu", "negative", "sqrt"], ["relu", "negative", "exp"],
    ]  # fmt: skip


def test_a_dear_producer_is_stored():
    shared = op.exp(op.exp(op.exp(X, name="a"), name="a1"), name="a2")
    slow = FusionOptions(recompute=True, flops_per_second=1e9)
    out = Tuple((op.sqrt(shared, name="b"), op.tanh(shared, name="c")))
    after = fused(out, slow)
    assert kernels(after) == [["exp", "exp", "exp"], ["sqrt"], ["tanh"]]
    assert rule_of(after, "a2", "b") == "dear"


def test_copies_that_are_compared_are_not_made():
    shared = op.multiply(X, 3.0, name="a")
    greatest = op.max(shared, axis=0, keepdims=True, name="b")
    after = fused(op.exp(op.subtract(shared, greatest, name="c"), name="d"), RECOMPUTE)
    assert kernels(after) == [["multiply"], ["max"], ["subtract", "exp"]]
    assert rule_of(after, "a", "b") == rule_of(after, "a", "c") == "compared"


def test_copies_whose_readers_come_together_later_are_not_made():
    shared = op.multiply(X, 3.0, name="a")
    greatest, centred = op.max(shared, axis=0, name="b"), op.subtract(shared, 1.0, name="c")
    out = op.exp(op.subtract(op.sort(centred), op.sort(greatest)))
    after = fused(out, RECOMPUTE)
    assert rule_of(after, "a", "b") == rule_of(after, "a", "c") == "compared"
    apart = fused(Tuple((op.sort(centred), op.sort(greatest))), RECOMPUTE)
    assert rule_of(apart, "a", "b") == rule_of(apart, "a", "c") == "recomputed"


def test_copies_that_do_not_round_may_be_compared():
    shared = op.nn.relu(op.negative(X), name="a")
    greatest = op.max(shared, axis=0, keepdims=True, name="b")
    after = fused(op.exp(op.subtract(shared, greatest, name="c"), name="d"), RECOMPUTE)
    assert kernels(after) == [["negative", "relu", "max"], ["negative", "relu", "subtract", "exp"]]
    assert rule_of(after, "a", "b") == rule_of(after, "a", "c") == "recomputed"


def test_a_kernel_with_several_results_is_not_copied():
    a, b = op.nn.relu(X, name="a"), op.negative(X, name="b")
    out = Tuple((op.sum(a, axis=0, name="u"), op.sort(a), op.sum(b, axis=1), op.sort(b)))
    after = fused(out, FusionOptions(recompute=True, siblings=True))
    assert kernels(after) == kernels(fused(out, SIBLINGS))
    assert rule_of(after, "a", "u") == "several results"
    parts = op.split(X, indices_or_sections=2, axis=1, name="s")
    out = Tuple((op.tanh(parts[0], name="t"), op.sqrt(parts[1], name="r"), op.exp(parts[0])))
    after = fused(out, RECOMPUTE)
    assert kernels(after) == kernels(fused(out, FusionOptions()))
    assert rule_of(after, "s", "t") == rule_of(after, "s", "r") == "several results"


def test_a_producer_that_one_reader_cannot_take_is_stored():
    image = op.nn.relu(var("i", (1, 4, 5, 5)), name="a")
    after = fused(Tuple((conv(image, "b"), op.tanh(image, name="c"))), RECOMPUTE)
    assert kernels(after) == [["relu"], ["conv2d"], ["tanh"]]
    assert rule_of(after, "a", "c") == "not in all"


def test_what_the_published_rule_would_fuse_is_taken():
    image = var("i", (1, 4, 5, 5))
    made = conv(image, "k")
    plain, turned = op.nn.relu(image, name="a"), op.transpose(image, axes=(0, 1, 3, 2), name="t")
    behind = op.add(made, plain, name="b")
    assert kernels(fused(Tuple((behind, op.tanh(plain))), RECOMPUTE)) == [
        ["conv2d", "relu", "add"], ["relu", "tanh"],
    ]  # fmt: skip
    after = fused(Tuple((op.add(made, turned, name="b"), op.tanh(turned, name="c"))), RECOMPUTE)
    assert rule_of(after, "t", "c") == "not in all"
    joined = op.concatenate([plain, image], axis=1, name="j")
    assert ["relu", "concatenate"] in kernels(fused(Tuple((joined, op.tanh(plain))), RECOMPUTE))


def test_nothing_is_computed_again_before_an_anchor():
    image = var("i", (1, 4, 5, 5))
    plain = op.nn.relu(image, name="a")
    padded = op.nn.pad(plain, pad_width=((0, 0), (0, 0), (1, 1), (1, 1)), name="p")
    out = Tuple((op.nn.conv2d(padded, var("w", (4, 4, 3, 3)), name="k"), op.tanh(plain)))
    module = graph.fuse(Module.from_expr(out), "p", "k")
    assert kernels(fuse_ops(module, options=RECOMPUTE)) == [["relu"], ["pad", "conv2d"], ["tanh"]]


def test_a_result_or_a_view_is_not_computed_again():
    shared = op.nn.relu(X, name="a")
    out = Tuple((shared, op.sqrt(shared, name="b"), op.tanh(shared)))
    assert kernels(fused(out, RECOMPUTE)) == [["relu"], ["sqrt"], ["tanh"]]
    view = op.reshape(X, newshape=(8, 16))
    assert len(kernels(fused(Tuple((op.sqrt(view), op.tanh(view))), RECOMPUTE))) == 3


def pair(shared):
    return Tuple((op.sqrt(shared, name="b"), op.tanh(shared, name="c")))


def test_limits_and_wishes_hold():
    shared = op.nn.relu(X, name="a")
    assert rule_of(fused(pair(shared), RECOMPUTE, max_depth=1), "a", "b") == "too many"
    few = FusionOptions(recompute=True, max_live=1)
    assert rule_of(fused(pair(shared), few), "a", "b") == "registers"
    apart = graph.keep_apart(Module.from_expr(pair(shared)), "a", "c")
    after = fuse_ops(apart, options=RECOMPUTE)
    assert kernels(after) == [["relu"], ["sqrt"], ["tanh"]]
    assert rule_of(after, "a", "b") == "kept apart"
    stopped = op.annotation.stop_fusion(shared)
    assert len(kernels(fused(pair(stopped), RECOMPUTE))) == 3


def test_branches_are_left_as_they_are():
    shared = op.nn.relu(X)
    out = Tuple((op.sqrt(shared), If(as_expr(True), op.tanh(shared), op.exp(shared))))
    both = FusionOptions(recompute=True, siblings=True)
    assert kernels(fused(out, both)) == kernels(fused(out, FusionOptions()))


# -- siblings --------------------------------------------------------------------------------------


def test_siblings_are_one_kernel_with_two_results():
    out = Tuple((op.sqrt(X, name="a"), op.multiply(op.tanh(X), X, name="b")))
    after = fused(out, SIBLINGS)
    assert kernels(after) == [["sqrt", "tanh", "multiply"]]
    assert rule_of(after, "a", "b") == "siblings"
    (found,) = [d for d in after.decisions() if d.rule == "siblings"]
    assert (found.effect.bytes, found.effect.kernels) == (512, 1)
    assert moved_bytes(after) == moved_bytes(fused(out, FusionOptions())) - 512
    assert graph.plan_memory(after).bytes == 2 * 512
    assert graph.modules_equal(graph.parse(graph.module_text(after)), after)


def test_results_of_siblings_go_on():
    total = op.add(op.sum(op.sqrt(X), axis=0), op.max(op.tanh(X), axis=0))
    halves = [op.nn.dense(op.sqrt(X), var("u", (3, 8))), op.nn.dense(op.tanh(X), var("v", (3, 8)))]
    assert kernels(fused(op.add(*halves), SIBLINGS)) == [
        ["sqrt", "tanh"], ["dense"], ["dense", "add"],
    ]  # fmt: skip
    assert kernels(fused(total, SIBLINGS)) == [["sqrt", "sum", "tanh", "max"], ["add"]]


@pytest.mark.parametrize(
    "out",
    [
        # One needs the other.
        Tuple(((first := op.sqrt(X)), op.add(op.sort(first), X))),
        # Other loops.
        Tuple((op.sqrt(X), op.transpose(X))),
        # No input in common.
        Tuple((op.sqrt(X), op.tanh(var("y", (16, 8))))),
        # Loop nests of their own.
        Tuple((op.nn.dense(X, var("u", (3, 8))), op.nn.dense(X, var("v", (3, 8))))),
    ],
    ids=["dependent", "loops", "inputs", "anchors"],
)
def test_other_kernels_are_no_siblings(out):
    assert kernels(fused(out, SIBLINGS)) == kernels(fused(out, FusionOptions()))


def test_two_groups_of_siblings_make_no_cycle():
    y = var("y", (16, 8))
    a, c = op.sqrt(X, name="a"), op.tanh(y, name="c")
    b = op.add(op.sort(c), X, name="b")
    d = op.add(op.sort(a), y, name="d")
    after = fused(Tuple((a, b, c, d)), SIBLINGS)
    assert len(kernels(after)) == 5  # a with b, or c with d; then the others depend on each other


def test_limits_and_wishes_of_siblings_hold():
    out = Tuple((op.sqrt(X, name="a"), op.tanh(X, name="b"), op.exp(X, name="c")))
    few = FusionOptions(siblings=True, max_live=3)
    after = fused(out, few)
    assert kernels(after) == [["sqrt", "tanh"], ["exp"]]
    assert rule_of(after, "a", "c") == "registers"
    assert rule_of(fused(out, SIBLINGS, max_depth=2), "a", "c") == "too many"
    apart = fuse_ops(graph.keep_apart(Module.from_expr(out), "b", "a"), options=SIBLINGS)
    assert kernels(apart) == [["sqrt", "exp"], ["tanh"]]
    assert rule_of(apart, "a", "b") == "kept apart"


def test_all_rules_together():
    shared = op.nn.relu(X, name="a")
    out = Tuple((op.sqrt(shared), op.tanh(shared)))
    both = FusionOptions(rows=True, recompute=True, siblings=True)
    after = fused(out, both)
    assert kernels(after) == [["relu", "sqrt", "tanh"]]
    function = Function((X,), out)
    again = fuse_ops(Module.from_expr(function), options=both)
    assert fuse_ops(again, options=both) is again


@pytest.mark.campaign
def test_the_documentation_has_the_table_of_the_rules():
    page = Path(fusion_table.__file__).parents[2] / "docs" / "GRAPHS.md"
    assert fusion_table.table() in page.read_text(encoding="utf-8")
