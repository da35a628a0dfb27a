"""A default config is legal, and its schedule lowers, whatever the shape, dtype and machine."""

import dataclasses
import itertools
import os
import random

import pytest

from dlcompiler import ops
from dlcompiler.pipeline import lower
from dlcompiler.target import resolve
from tests.ops.drawn_workloads import CPUS, NAMES, PARTS, drawn_target, drawn_workload
from tests.ops.products import check
from tests.share import CI_SHARE

IS_FULL = bool(os.environ.get("DLCOMPILER_TEST_FULL"))
DRAWS = range(4000 if IS_FULL else 200)
LOWERED = range(200 if IS_FULL else CI_SHARE)


def _drawn(name, seed, most):
    choose = random.Random(f"{name} {seed}")
    return drawn_workload(name, choose, most), drawn_target(choose)


def _chosen(name, params, target):
    """Return the default of a workload, which must lie in the space and be allowed there."""
    chosen = ops.select(name, params, target, tuned={})
    space = chosen.operator.space(chosen.workload, target)
    assert space.forbidden_by(chosen.config) is None
    assert space.at(space.index_of(chosen.config)) == chosen.config
    return chosen


@pytest.mark.campaign
@PARTS
@pytest.mark.parametrize("name", NAMES)
def test_any_default_is_legal(name, part):
    for seed in DRAWS[part::CI_SHARE]:
        params, target = _drawn(name, seed, 1 << 20)
        try:
            _chosen(name, params, target)
        except Exception as error:
            if "the tensor is too large" not in str(error):  # more than any tensor may have
                raise AssertionError(f"{name}, seed {seed}: {params} on {target}") from error


@pytest.mark.campaign
@PARTS
@pytest.mark.parametrize("name", NAMES)
def test_any_default_lowers(name, part):
    for seed in LOWERED[part::CI_SHARE]:
        params, target = _drawn(name, f"lowered {seed}", 3000)
        try:
            chosen = _chosen(name, params, target)
            schedule, args = chosen.operator.template(chosen.workload, target, chosen.config)
            lower(schedule, args, target=target)
        except Exception as error:
            raise AssertionError(f"{name}, seed {seed}: {params} on {target}") from error


@pytest.mark.campaign
@pytest.mark.parametrize("cpu", CPUS)
def test_few_rows_and_columns_on_several_cores(cpu):
    target = resolve(cpu)
    sizes = itertools.product((1, 2, 3, 4, 8, 9), (1, 2, 3, 5, 8, 9, 16, 17, 31, 32, 33))
    choose = random.Random(7)
    for m, n in sizes:
        for k, cores in itertools.product((1024, 100_000, 1 << 20), (2, 3, 8, 64)):
            machine = dataclasses.replace(target, cores=cores)
            params = {"m": m, "n": n, "k": k, "layout": choose.choice(("NN", "NT", "TN", "TT"))}
            _chosen("matmul", params, machine)
            _chosen("batch_matmul", {**params, "batch": choose.choice((1, 3, 12, 64))}, machine)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("matmul", (3, 3, 100_000)),
        ("batch_matmul", (64, 1, 32, 1024)),
        ("batch_matmul", (12, 1, 64, 2048)),
        ("batch_matmul", (12, 1, 2048, 64)),
    ],
)
def test_these_lower_and_are_right_on_two_cores(name, sizes):
    names = ("m", "n", "k") if name == "matmul" else ("batch", "m", "n", "k")
    target = dataclasses.replace(resolve("cpu"), cores=2)
    chosen = _chosen(name, dict(zip(names, sizes, strict=True)), target)
    check(chosen.operator, chosen.workload, chosen.config, target=target)


@pytest.mark.campaign
@pytest.mark.parametrize("packed", [3, 4, 17, 24, 62, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_a_panel_that_is_no_whole_number_of_vectors(packed, dtype):
    for name, n in (("matmul", 2 * packed - 1), ("dense", 7)):
        operator = ops.operator(name)
        check(operator, operator.workload(m=5, n=n, k=9, dtype=dtype, packed=packed))


@pytest.mark.campaign
@pytest.mark.parametrize(("groups", "outputs"), [(2, 14), (3, 21), (2, 64)])
def test_blocks_that_a_group_cuts_short_are_shared_by_cores(groups, outputs):
    operator = ops.operator("conv2d_gemm")
    target = dataclasses.replace(resolve("cpu"), cores=3)
    sizes = {"c": 2 * groups, "h": 9, "w": 11, "o": outputs, "groups": groups}
    workload = operator.workload(**sizes, n=2, kernel=3, padding=1, block=6)
    space = operator.space(workload, target)
    known = operator.default_config(workload, target).values
    for order in ("rows", "channels"):
        config = space.config(**{**known, "order": order, "parallel": True})
        check(operator, workload, config, target=target)
