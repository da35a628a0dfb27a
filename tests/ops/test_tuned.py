"""ops.tuned: shipped configs are used where they fit, and passed over where they do not."""

import json
from dataclasses import replace

import pytest

from dlcompiler import ops
from dlcompiler.errors import TuningError
from dlcompiler.ops import tuned
from dlcompiler.target import resolve

MATMUL = ops.operator("matmul")
AVX2 = resolve("x86-64-avx2")
WORK = MATMUL.workload(m=48, n=48, k=48)


def test_a_tuned_config_is_used_and_survives_json():
    space = MATMUL.space(WORK, AVX2)
    values = dict(space.at(space.sample(1, seed=2)[0]).values)
    found = tuned.read(json.loads(json.dumps(tuned.write({WORK: values}))))
    assert dict(ops.config_for(MATMUL, WORK, AVX2, found).values) == values


@pytest.mark.parametrize("values", [{"tile_m": 999}, {"other": 1}])
def test_values_of_another_space_are_passed_over(values):
    default = MATMUL.default_config(WORK, AVX2)
    assert ops.config_for(MATMUL, WORK, AVX2, {WORK: values}) == default
    assert ops.config_for(MATMUL, WORK, AVX2, {}) == default


def test_knobs_that_are_not_named_are_chosen_analytically():
    default = MATMUL.default_config(WORK, AVX2)
    cfg = ops.config_for(MATMUL, WORK, AVX2, {WORK: {"unroll_k": 1}})
    assert dict(cfg.values) == {**default.values, "unroll_k": 1}


def test_what_depends_on_the_cores_is_kept_on_one_core_only():
    work = MATMUL.workload(m=512, n=512, k=512)
    cores = {n: replace(AVX2, cores=n) for n in (1, 2)}
    values = {"panel": 1, "block": 8, "tile_m": 4}
    found = {n: ops.config_for(MATMUL, work, target, {work: values}) for n, target in cores.items()}
    assert values.items() <= dict(found[1].values).items()
    default = MATMUL.default_config(work, cores[2])
    assert dict(found[2].values) == {**default.values, "tile_m": 4}
    assert default["parallel"]


def test_what_is_shipped_can_be_read():
    assert tuned.target_class(AVX2) == "cpu-x86_64-avx2"
    tuned.shipped("cpu-x86_64-avx2")
    with pytest.raises(TuningError, match="not a document of this version"):
        tuned.read({"version": 2})


def test_what_is_shipped_fits_the_spaces():
    for workload, values in tuned.shipped("cpu-x86_64-avx2").items():
        cfg = ops.config_for(ops.operator(workload.op), workload, AVX2)
        assert values.items() <= dict(cfg.values).items(), str(workload)
