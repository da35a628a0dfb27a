"""The arguments of a primitive are declared once: checks, steps and refusals agree on them."""

import inspect

import pytest

from dlcompiler.schedule.primitives import REGISTRY


def _keywords(function):
    found = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in found if p.kind is inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_check_and_apply_take_what_is_declared(name):
    item = REGISTRY[name]
    assert list(_keywords(item.check)) == list(item.parameters)
    assert _keywords(item.check) == _keywords(item.apply)


def test_a_signature_shows_what_may_be_left_out(matmul):
    assert REGISTRY["split"].signature == "axis, factor=None, nparts=None"
    assert REGISTRY["compute_root"].signature == ""
    verdict = matmul.s.can("split", matmul.i, factr=4)
    assert (verdict.reason, verdict.hint) == (
        "no argument is called factr",
        "the arguments are: axis, factor=None, nparts=None",
    )
    verdict = matmul.s.attempt("compute_root", "C", {"axis": matmul.i}).verdict
    assert verdict.hint == "the arguments are: none"
