"""ops.gemm: what the forms of schedules look like, and which configs are left out."""

from dataclasses import replace

import pytest

from dlcompiler import te
from dlcompiler.errors import TuningError
from dlcompiler.ir import Allocate, For, structural_equal, walk
from dlcompiler.ops.gemm import MATMUL
from dlcompiler.pipeline import lower
from dlcompiler.target import resolve
from tests.ops.products import check

CPU = resolve("cpu")
AVX2 = resolve("x86-64-avx2")
AVX2_TWO_CORES = replace(AVX2, cores=2)
PLAIN = {
    "form": "tiles", "tile_m": 2, "tile_n": 16, "unroll_k": 1, "pack": False, "pack_a": False,
    "panel": 1, "block": 0, "parallel": "",
}  # fmt: skip


def lowered(changes, target=AVX2, simple_mode=False, **extents):
    workload = MATMUL.workload(**{"m": 8, "n": 32, "k": 4, **extents})
    cfg = MATMUL.space(workload, target).config(**{**PLAIN, **changes})
    schedule, args = MATMUL.template(workload, target, cfg)
    return lower(schedule, args, name="matmul", simple_mode=simple_mode)


def buffers(func):
    return [node.buffer.name for node in walk(func.body) if isinstance(node, Allocate)]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("tiles", {"pack": True, "unroll_k": 2}),
        ("blocks", {"pack": True, "pack_a": True, "panel": 2}),
        ("rows", {"form": "rows", "panel": 0}),
    ],
)
def test_forms(name, changes, golden):
    golden(name, str(lowered(changes, simple_mode=True)))


def test_dots(golden):
    changes = {"form": "dots", "tile_n": 2, "panel": 0}
    golden("dots", str(lowered(changes, simple_mode=True, layout="NT", k=16)))


def test_dots_of_vectors_with_one_lane():
    target = resolve("c")
    workload = MATMUL.workload(m=2, n=10, k=100, layout="NT", dtype="float64")
    config = MATMUL.default_config(workload, target)
    assert (config["form"], target.lanes("float64")) == ("dots", 1)
    check(MATMUL, workload, config, target=target)


def test_without_packing_operands_are_read_where_they_are():
    assert buffers(lowered({})) == ["matmul.sums"]


@pytest.mark.parametrize(
    "changes",
    [
        {"parallel": "panels", "panel": 2},
        {"parallel": "blocks", "panel": 0, "block": 4, "tile_m": 1, "pack_a": True},
        {"parallel": "blocks", "panel": 2},
        {"parallel": "panels", "form": "rows", "pack": False, "panel": 2},
        {"parallel": "panels", "form": "dots", "tile_n": 2, "panel": 2},
        {"parallel": "blocks", "form": "dots", "tile_n": 2, "panel": 0},
    ],
    ids=str,
)
def test_what_cores_share(changes):
    workload = MATMUL.workload(m=30, n=50, k=16)
    values = {**PLAIN, "pack": True, **changes}
    cfg = MATMUL.space(workload, AVX2_TWO_CORES).config(**values)
    schedule, args = MATMUL.template(workload, AVX2_TWO_CORES, cfg)
    kinds = [node.kind for node in walk(lower(schedule, args).body) if isinstance(node, For)]
    assert "parallel" in kinds
    check(MATMUL, workload, cfg, target=AVX2_TWO_CORES)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"form": "rows", "pack": True},
        {"form": "dots", "tile_n": 2, "pack": True, "layout": "NT"},
        {"form": "dots", "pack": True},
        {"unroll_k": 4, "pack": True},
    ],
    ids=str,
)
def test_combinations_that_cannot_be_are_left_out(changes):
    layout = changes.get("layout", "NN")
    workload = MATMUL.workload(m=20, n=60, k=6, layout=layout)
    values = {**PLAIN, **{name: value for name, value in changes.items() if name != "layout"}}
    with pytest.raises(TuningError, match="the form has its own tiles, copies and layouts"):
        MATMUL.space(workload, AVX2).config(**values)


def test_the_python_of_a_schedule_runs_as_it_is_printed():
    for extents in ({"m": 64, "n": 48, "k": 32}, {"m": 64, "n": 3, "k": 32}):
        workload = MATMUL.workload(**extents)
        schedule, args = MATMUL.template(workload, CPU, MATMUL.default_config(workload, CPU))
        names = {"te": te, "C": args[-1]}
        exec(schedule.trace.to_python(), names)
        again = lower(names["s"], args)
        assert structural_equal(again.body, lower(schedule, args).body)
