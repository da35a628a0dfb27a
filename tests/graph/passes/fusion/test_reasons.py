"""The decision about each edge: its rule, and what it says."""

import pytest

from dlcompiler.graph import op, var
from dlcompiler.graph.ir import Module, Tuple
from dlcompiler.graph.passes import fuse_ops
from dlcompiler.graph.passes.fusion import RULES

X = var("x", (1, 4, 6, 6))


def conv(data, name):
    return op.nn.conv2d(data, var(f"{name}_w", (4, 4, 3, 3)), padding=1, name=name)


def edge(expr, a, b):
    """Return the decision about an edge of a graph."""
    (found,) = [
        d for d in fuse_ops(Module.from_expr(expr)).decisions(about=a) if d.subject == (a, b)
    ]
    return found


CASES = {
    "elementwise after anchor": (op.nn.relu(conv(X, "a"), name="b"), "fused"),
    "same loops": (op.exp(op.sqrt(X, name="a"), name="b"), "fused"),
    "opaque": (op.sort(op.exp(X, name="a"), name="b"), "not fused"),
    "result": (Tuple(((shared := op.exp(X, name="a")), op.sqrt(shared, name="b"))), "not fused"),
    "two anchors": (conv(op.nn.relu(conv(X, "conv1"), name="a"), "b"), "not fused"),
    "into an anchor": (conv(op.exp(X, name="a"), "b"), "not fused"),
    "reduction": (op.sqrt(op.sum(X, name="a"), name="b"), "not fused"),
    "moved after anchor": (op.transpose(conv(X, "a"), name="b"), "not fused"),
    "repeated after anchor": (
        op.add(
            op.nn.dense(var("r", (1, 3)), var("w", (6, 3)), name="a"), var("m", (5, 6)), name="b"
        ),
        "not fused",
    ),
    "no common consumer": (
        Tuple((op.sqrt((both := op.exp(X, name="a")), name="b"), op.tanh(both, name="c"))),
        "not fused",
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", CASES)
def test_the_rule_of_an_edge(rule):
    expr, verdict = CASES[rule]
    decision = edge(expr, "a", "b")
    assert (decision.rule, decision.verdict) == (rule, verdict)
    assert "{" not in decision.reason + decision.remedy


def test_words_of_decisions(golden):
    texts = []
    for rule, (expr, _) in CASES.items():
        decision = edge(expr, "a", "b")
        texts.append(f"{rule}: {decision.reason}\n    {decision.remedy}")
    golden("reasons", "\n".join(texts) + "\n")


def test_the_effect_counts_each_reader():
    made = conv(X, "a")
    alone = edge(op.nn.relu(made, name="b"), "a", "b")
    assert alone.effect.bytes == 2 * 4 * 4 * 36
    shared = op.exp(X, name="a")
    out = Tuple((op.sqrt(shared, name="b"), op.tanh(shared, name="c")))
    assert edge(out, "a", "b").effect.bytes == 4 * 4 * 36


def test_decisions_have_stable_ids():
    expr = CASES["same loops"][0]
    first, second = (fuse_ops(Module.from_expr(expr)).decisions() for _ in range(2))
    assert [d.id for d in first] == [d.id for d in second] == ["fuse_ops:a->b"]
    assert first[0].to_dict()["effect"]["kernels"] == 1


def test_all_rules_are_known():
    assert {rule for rule, _ in CASES.items()} <= RULES.keys()
