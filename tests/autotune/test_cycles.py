"""Tuning on the cycles of a simulated accelerator."""

from dlcompiler import ops
from dlcompiler.autotune import tune
from dlcompiler.autotune.pools.cycles import CyclesMeasurer
from dlcompiler.target import resolve

VTA = resolve("vta-pynq")
CONV = ops.operator("conv2d_packed")
WORKLOAD = CONV.workload(c=32, h=8, w=8, o=64, kernel=3, padding=1)


def test_a_search_finds_fewer_cycles_than_its_worst_trial():
    run = tune(WORKLOAD, target=VTA, trials=6, tuner="random")
    run.wait()
    taken = [trial.result.seconds for trial in run.trials if trial.result.outcome == "ok"]
    assert len(taken) == 6
    assert run.best.result.seconds == min(taken)
    provenance = run.best.result.provenance
    assert (provenance.kind, provenance.on) == ("simulated", "vta-pynq, profile B")


def test_equal_configs_take_equal_cycles():
    measurer = CyclesMeasurer(CONV, WORKLOAD, VTA)
    config = CONV.default_config(WORKLOAD, VTA)
    first, second = (measurer.measure(config, None) for _ in range(2))
    assert first.samples_s == second.samples_s
    assert first.outcome == "ok"


def test_wrong_values_are_found(monkeypatch):
    measurer = CyclesMeasurer(CONV, WORKLOAD, VTA)
    exact = CONV.reference(WORKLOAD, 0)
    wrong = {name: array + 1 for name, array in exact.expected.items()}
    monkeypatch.setattr(
        type(CONV), "reference", lambda *_: type(exact)(exact.inputs, wrong, exact.bound)
    )
    result = measurer.measure(CONV.default_config(WORKLOAD, VTA), None)
    assert result.outcome == "wrong answer"
    assert "elements of result are wrong" in result.message
