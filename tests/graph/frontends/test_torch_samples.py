"""Operators of PyTorch with the samples of its own tests: none is wrong, none crashes."""

from itertools import islice

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
pytest.importorskip("expecttest", reason="tests of PyTorch need it: pip install expecttest")

from tests.share import share_of


@pytest.mark.filterwarnings("ignore")
def test_samples():
    from tests.graph.frontends.torch_samples import operators, samples, try_sample  # takes 10 s

    every = operators()
    step = max(len(every) // share_of(len(every), at_least=20), 1)
    outcomes = [
        try_sample(info, sample, compiled=number % 10 == 0)
        for number, info in enumerate(every[::step])
        for sample in islice(samples(info), 2)
    ]  # fmt: skip
    assert not [each for each in outcomes if each.kind in ("wrong", "crash")]
    assert sum(each.kind == "pass" for each in outcomes) >= len(outcomes) / 2
