"""Fusion that the user forces or forbids."""

import json
import random

import numpy as np
import pytest

from dlcompiler import graph
from dlcompiler.errors import GraphError
from dlcompiler.graph import evaluate, op, var
from dlcompiler.graph.decisions import Wish, decision_of, decisions_json
from dlcompiler.graph.ir import Call, Function, GlobalVar, Module, Tuple, post_order
from dlcompiler.graph.passes import PassContext, fuse_ops
from dlcompiler.graph.passes.pipeline import optimize
from tests.graph.passes.fusion.test_reasons import CASES, X, conv
from tests.graph.passes.fusion.test_relay_cases import kernels
from tests.graph.random_graphs import RandomGraph, flat, inputs_of
from tests.share import share_of

CAN_BE_FORCED = {"into an anchor", "reduction", "moved after anchor", "repeated after anchor"}
REFUSED = {
    **{rule: CASES[rule][0] for rule in ("opaque", "result", "no common consumer")},
    "two anchors": conv(conv(X, "a"), "b"),
}


def same_values(module, after, seed=0):
    inputs = inputs_of(module, seed)
    for a, b in zip(flat(evaluate(module, *inputs)), flat(evaluate(after, *inputs)), strict=True):
        assert np.array_equal(a, b, equal_nan=True), f"seed {seed}"


def about(module, a, b):
    (found,) = [d for d in module.decisions(about=a) if d.subject == (a, b)]
    return found


@pytest.mark.parametrize("rule", sorted(CAN_BE_FORCED))
def test_what_the_rules_do_not_fuse_can_be_forced(rule):
    module = Module.from_expr(CASES[rule][0])
    after = fuse_ops(graph.fuse(module, "a", "b"))
    assert (about(after, "a", "b").verdict, about(after, "a", "b").rule) == ("fused", "forced")
    same_values(module, after)


@pytest.mark.parametrize("rule", REFUSED)
def test_a_wish_that_cannot_be_is_refused_with_its_rule(rule):
    module = graph.fuse(Module.from_expr(REFUSED[rule]), "a", "b")
    with pytest.raises(GraphError, match=rf"cannot be one kernel \({rule}\)"):
        fuse_ops(module)


def test_the_words_of_a_refusal(golden):
    module = graph.fuse(Module.from_expr(REFUSED["two anchors"]), "a", "b")
    with pytest.raises(GraphError) as error:
        fuse_ops(module)
    golden("refused", f"{error.value}\n")


def test_calls_that_are_kept_apart():
    module = Module.from_expr(op.nn.relu(op.exp(conv(X, "a"), name="b"), name="c"))
    assert kernels(fuse_ops(module)) == [["conv2d", "exp", "relu"]]
    apart = fuse_ops(graph.keep_apart(module, "a", "b"))
    assert kernels(apart) == [["conv2d"], ["exp", "relu"]]
    assert about(apart, "a", "b").rule == "kept apart"
    assert kernels(fuse_ops(graph.keep_apart(module, "c", "a"))) == [["conv2d", "exp"], ["relu"]]


def test_a_forced_reduction_is_not_fused_further():
    total = op.sum(X, axis=3, keepdims=True, name="a")
    module = Module.from_expr(op.transpose(op.sqrt(total, name="b")))
    assert kernels(fuse_ops(graph.fuse(module, "a", "b"))) == [["sum", "sqrt"], ["transpose"]]


def test_all_uses_of_a_producer_come_into_its_kernel():
    total = op.sum(X, axis=3, keepdims=True, name="a")
    module = Module.from_expr(op.add(op.sqrt(total, name="b"), op.exp(total, name="c")))
    assert kernels(fuse_ops(graph.fuse(module, "a", "b"))) == [["sum", "sqrt", "exp", "add"]]


def test_several_wishes():
    padded = op.nn.pad(X, pad_width=((0, 0), (0, 0), (1, 1), (1, 1)), name="p")
    made = op.nn.conv2d(padded, var("w", (4, 4, 3, 3)), name="c")
    module = Module.from_expr(op.transpose(made, name="t"))
    wished = graph.fuse(graph.fuse(module, "p", "c"), "c", "t")
    after = fuse_ops(wished)
    assert kernels(after) == [["pad", "conv2d", "transpose"]]
    same_values(module, after)
    with pytest.raises(GraphError, match="kept apart"):
        fuse_ops(graph.keep_apart(wished, "p", "t"))


def test_stop_fusion_is_stronger():
    stopped = op.annotation.stop_fusion(op.exp(X, name="a"), name="b")
    module = graph.fuse(Module.from_expr(op.sqrt(stopped)), "a", "b")
    with pytest.raises(GraphError, match="stop_fusion"):
        fuse_ops(module)


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (lambda m: graph.fuse(m, "a", "nosuch"), "no call has this name"),
        (lambda m: graph.keep_apart(m, "b\n", "a"), "no call has this name"),
        (lambda m: graph.fuse(m, "a", "a"), "it is one call"),
        (lambda m: graph.fuse(graph.keep_apart(m, "a", "b"), "a", "b"), "keep apart them before"),
        (lambda m: fuse_ops(graph.fuse(m, "b", "a")), "a does not use b"),
        (lambda m: fuse_ops(graph.fuse(m, "a.scale", "b")), "no call a.scale any more"),
    ],
)
def test_wishes_that_make_no_sense(wish, words):
    module = Module.from_expr(op.exp(op.sqrt(X, name="a"), name="b"))
    with pytest.raises(GraphError, match=words):
        wish(module)


def test_a_fused_module_can_be_fused_again():
    module = Module.from_expr(op.exp(op.sqrt(X, name="a"), name="b"))
    once = fuse_ops(graph.fuse(module, "a", "b"))
    assert fuse_ops(once) is once
    assert graph.fuse(graph.fuse(module, "a", "b"), "a", "b").wishes == (Wish("fuse", ("a", "b")),)


@pytest.mark.campaign
def test_random_wishes_are_honoured_or_refused():
    honoured = 0
    for seed in range(share_of(200, at_least=40)):
        random_ = random.Random(seed)
        module = optimize(RandomGraph(seed, 14).module(), 4, context=WITHOUT_FUSION)
        edges = [d.subject for d in fuse_ops(module).decisions() if d.made_by == "fuse_ops"]
        if not edges:
            continue
        wished = module
        for _ in range(2):
            a, b = random_.choice(edges)
            try:
                kind = random_.choice((graph.fuse, graph.keep_apart))
                wished = fuse_or_same(kind(wished, a, b), wished)
            except GraphError:
                continue
        after = fuse_ops(wished)
        for wish in wished.wishes:
            honoured += 1
            assert (about(after, *wish.subject).verdict == "fused") == (wish.kind == "fuse")
        same_values(module, after, seed)
    assert honoured


WITHOUT_FUSION = PassContext(4, disabled_pass=("fuse_ops",))


def fuse_or_same(wished, before):
    """Return a module with one more wish if it can be honoured."""
    try:
        fuse_ops(wished)
    except GraphError:
        return before
    return wished


def test_the_log_as_json():
    shared = op.exp(X, name="a")
    out = Tuple((op.sqrt(shared, name="b"), op.tanh(shared, name="c")))
    module = fuse_ops(optimize(Module.from_expr(out), 3, context=WITHOUT_FUSION))
    rows = json.loads(decisions_json([*module.decisions(), *module.decisions()]))
    assert [row["id"] for row in rows] == [
        "fuse_ops:a->b", "fuse_ops:a->c", "fuse_ops:a->b#2", "fuse_ops:a->c#2",
    ]  # fmt: skip
    assert [decision_of(row) for row in rows[:2]] == list(module.decisions())
    assert json.loads(decisions_json(module.decisions(about="c")))[0]["subject"] == ["a", "c"]


# -- calls that passes replaced --------------------------------------------------------------------


def normalised():
    """Return a convolution with a batch normalisation and a relu."""
    weights = [var(f"n_{part}", (4,)) for part in ("gamma", "beta", "mean", "var")]
    made = op.nn.batch_norm(conv(X, "c"), *weights, name="n")[0]
    return Module.from_expr(op.nn.relu(made, name="r"))


def kernel_of(module):
    """Return the index of the kernel of each call, by the names of the calls."""
    found = [n for n in post_order(module.main.body) if isinstance(n, Function)]
    return {name: i for i, f in enumerate(found) for name in Module({"main": f}).calls()}


def test_what_a_pass_made_from_a_call_is_kept_apart():
    # The normalisation becomes n.scale (a product) and n (a sum).
    plain = optimize(normalised(), 0)
    assert kernel_of(plain)["c"] == kernel_of(plain)["n.scale"] == kernel_of(plain)["n"]
    apart = kernel_of(optimize(graph.keep_apart(normalised(), "c", "n"), 0))
    assert apart["c"] not in {index for name, index in apart.items() if name.startswith("n")}
    assert apart["n"] == apart["r"]


def test_a_wish_reaches_through_what_a_pass_made():
    total = op.sum(X, axis=(2, 3), name="s")
    weights = [var(f"n_{part}", (4,)) for part in ("gamma", "beta", "mean", "var")]
    module = Module.from_expr(op.nn.batch_norm(total, *weights, name="n")[0])
    assert kernel_of(optimize(module, 0))["s"] != kernel_of(optimize(module, 0))["n"]
    fused = optimize(graph.fuse(module, "s", "n"), 0)
    assert kernel_of(fused)["s"] == kernel_of(fused)["n.scale"] == kernel_of(fused)["n"]
    assert about(fused, "s", "n.scale").rule == "forced"


@pytest.mark.parametrize("wish", [graph.fuse, graph.keep_apart])
def test_a_call_that_a_pass_removed_is_named_with_the_reason(wish):
    dropped = op.nn.dropout(op.exp(X, name="a"), name="d")[0]
    module = Module.from_expr(op.sqrt(dropped, name="b"))
    with pytest.raises(GraphError, match=r"no call d any more(.|\n)*dropped in training only"):
        optimize(wish(module, "a", "d"), 3)


def test_calls_with_dots_in_their_names_are_no_parts():
    module = Module.from_expr(op.tanh(op.exp(op.sqrt(X, name="a"), name="b.c"), name="b"))
    wished = graph.keep_apart(module, "a", "b")
    assert kernels(fuse_ops(wished)) == [["sqrt", "exp"], ["tanh"]]
    assert graph.from_json(graph.to_json(wished)).wishes == wished.wishes
    assert wished.wishes[0].beside == ("b.c",)


@pytest.mark.parametrize(
    ("wish", "words"),
    [(graph.fuse, "fused already"), (graph.keep_apart, "fused already")],
)
def test_a_wish_about_kernels_that_are_made_is_refused(wish, words):
    b = op.sum(op.sqrt(X, name="a"), axis=3, keepdims=True, name="b")
    fused = fuse_ops(Module.from_expr(op.exp(b, name="c")))
    pair = ("b", "c") if wish is graph.fuse else ("a", "b")
    with pytest.raises(GraphError, match=words):
        fuse_ops(wish(fused, *pair))


def test_calls_of_two_functions_cannot_be_one_kernel():
    x = var("p", (2,))
    other = Function((x,), op.exp(x, name="a"))
    y = var("y", (2,))
    module = Module.from_expr(op.sqrt(Call(GlobalVar("other"), (y,)), name="b"), {"other": other})
    with pytest.raises(GraphError, match=r"a is in the function other, and b in main"):
        fuse_ops(graph.fuse(module, "a", "b"))
