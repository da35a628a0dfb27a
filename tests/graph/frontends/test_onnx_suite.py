"""ONNX's own backend suite: what is imported computes the right values, the rest is refused."""

import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install onnx")

from tests.graph.frontends.onnx_cases import LIGHT, ROUNDED, STORED, cases, light_outcome, outcome

LEAST_PASSED = 0.85
"""Part of the cases that pass."""


def check(found):
    """Fail for a case that is wrong, or refused for a reason that nobody expects."""
    unexpected = {
        name: text
        for name, text in found.items()
        if text != "passed" and not (text.startswith("wrong") and ROUNDED.fullmatch(name))
        and ("\n" in text or not text.startswith("refused: "))
    }  # fmt: skip
    assert not unexpected


@pytest.mark.parametrize("kind", STORED)
def test_stored_models(kind):
    found = {case.name: outcome(case, is_compiled=False) for case in cases([kind])}
    check(found)
    if kind != "simple":  # these are sequences and strings
        assert sum(text == "passed" for text in found.values()) >= 0.9 * len(found)


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_operators():
    found = {
        case.name: outcome(case, is_compiled=n % 10 == 0) for n, case in enumerate(cases(["node"]))
    }
    check(found)
    passed = sum(text == "passed" for text in found.values())
    assert passed >= LEAST_PASSED * len(found), f"{passed} of {len(found)}"


@pytest.mark.campaign(longest=True)
@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_networks(path):
    assert light_outcome(path) == "passed"
