"""An accelerator of one memory and one instruction, added from outside: no package knows of it.

Its tile memory holds 8 rows of 8 floats. Copies between main memory and tiles are instructions, and
so is the sum of two rows.
"""

from dataclasses import replace

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import codegen, ops, pipeline, target, te
from dlcompiler.codegen.interface import interface_of
from dlcompiler.errors import MeasurementError, ScheduleError, TargetError
from dlcompiler.ir import For, IntrinsicCall, Store, walk
from dlcompiler.ir.rewrite import children
from dlcompiler.passes import Pass, simplify
from dlcompiler.pipeline import LoadedSource, Pipeline
from dlcompiler.runtime.device import HostMemory
from dlcompiler.runtime.source import Source, Text
from dlcompiler.schedule import create_schedule
from dlcompiler.simulate import interpret
from dlcompiler.target import MemoryScope
from dlcompiler.target.presets import C99, CPU_SCOPES

TILES = MemoryScope("toy.tile", rank=1, capacity=8 * 8 * 4, alignment=32, accessible_by=("toy",))
TOY = replace(
    C99, name="toy", device="toy accelerator", language="toy", runs_on="toy",
    scopes=(*CPU_SCOPES, TILES), emits=frozenset({"toy_add"}),
)  # fmt: skip


def row_sum():
    a, b = (te.placeholder((8,), name=name) for name in "ab")
    c = te.compute((8,), lambda i: a[i] + b[i], name="c")
    return te.decl_tensor_intrin(c.op, lambda ins, outs: "toy_add", "toy_row_sum")


def check_instructions(func, *, target):
    """Refuse intrinsics that are no instruction of the target."""
    for node in walk(func.body):
        if isinstance(node, IntrinsicCall) and node.part not in target.emits:
            raise TargetError(f"build {func.name} for toy", f"no instruction for {node.part!r}")
    return func


def instructions(stmt):
    """Yield the text of a statement, a line each."""
    match stmt:
        case For():
            yield f"repeat {stmt.extent}"
            yield from (f"  {line}" for line in instructions(stmt.body))
        case IntrinsicCall():
            yield f"add {', '.join(region.buffer.name for region in stmt.regions)}"
        case Store():
            yield f"move {stmt.buffer.name}"
        case _:
            for part in children(stmt):
                yield from instructions(part)


def emit(program, target):
    func = program.func
    text = "\n".join(instructions(func.body))
    return Source("toy", {"toy": Text(text)}, interface_of(func, func.name), program)


class ToyKernel(LoadedSource):
    def __call__(self, *arguments):
        interpret(self.func, arguments)


class Toy(HostMemory):
    def load(self, source, target):
        return ToyKernel(source, target)


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    """Add it: a target, a pipeline, a generator and a device, a line each."""
    passes = (
        Pass("simplify", simplify, establishes=frozenset({"affine indices"})),
        Pass("check instructions", check_instructions, reads_target=True),
    )
    monkeypatch.setitem(target.REGISTRY, "toy", TOY)
    monkeypatch.setitem(pipeline.PIPELINES, "toy accelerator", Pipeline(passes))
    monkeypatch.setitem(codegen.REGISTRY, "toy", emit)
    monkeypatch.setitem(pipeline.DEVICES, "toy", Toy())


@pytest.fixture
def sums():
    """Sum two arrays by rows of 8, through tiles."""
    A, B = (te.placeholder((4, 8), name=name) for name in "AB")
    C = te.compute((4, 8), lambda i, j: A[i, j] + B[i, j], name="C")
    s = create_schedule(C.op)
    tiles = [s.cache_read(tensor, "toy.tile", [C]) for tensor in (A, B)]
    for tile in tiles:
        s[tile].compute_at(s[C], C.op.axis[0])
    s[C].tensorize(C.op.axis[1], row_sum())
    return s, [A, B, C]


def test_it_builds_runs_and_is_verified(sums):
    kernel = dlc.build(*sums, target="toy", name="rows")
    assert isinstance(kernel, ToyKernel)
    assert kernel.source().splitlines() == [
        "repeat 4",
        "  repeat 8",
        "    move A.toy.tile",
        "  repeat 8",
        "    move B.toy.tile",
        "  add C, A.toy.tile, B.toy.tile",
    ]
    a, b = np.arange(64, dtype="float32").reshape(2, 4, 8)
    kernel(a, b, c := np.empty((4, 8), "float32"))
    assert np.array_equal(c, a + b)
    assert dlc.verify(*sums, target="toy").oracles == ("numpy", "interpreter")


def test_its_pass_reads_the_target(sums, monkeypatch):
    monkeypatch.setitem(target.REGISTRY, "toy", replace(TOY, emits=frozenset()))
    with pytest.raises(TargetError, match="no instruction for 'toy_add'"):
        dlc.build(*sums, target="toy")


def test_its_memory_is_a_scope_only_where_it_is(sums):
    with pytest.raises(TargetError) as caught:
        dlc.build(*sums, target="c")
    assert str(caught.value) == (
        "build main for c: A.toy.tile is in memory that c does not have\n"
        "  got       'toy.tile'\n"
        "  expected  'global', 'local'"
    )


def test_without_it_the_scope_is_unknown(monkeypatch):
    monkeypatch.delitem(target.REGISTRY, "toy")
    A = te.placeholder((8,), name="A")
    C = te.compute((8,), lambda i: A[i] + 1.0, name="C")
    with pytest.raises(ScheduleError, match="known scopes: global, local, shared, warp"):
        create_schedule(C.op).cache_read(A, "toy.tile", [C])


def test_the_moves_offer_its_memory(sums):
    s, args = sums
    scopes = {move.args.get("scope") for move in s.moves(args[0], "toy")}
    assert "toy.tile" in scopes
    assert "shared" not in scopes


def test_no_operator_has_a_schedule_for_it():
    with pytest.raises(TargetError) as caught:
        ops.select("matmul", {"m": 8, "n": 8, "k": 8}, TOY)
    assert str(caught.value) == (
        "schedule matmul for toy: the operator has no schedule for this kind of device\n"
        "  got       'toy accelerator'\n"
        "  expected  'cpu', 'gpu'\n"
        "  hint      write one, and register it: "
        "operator.schedules['toy accelerator'] = ops.DeviceSchedule(…)"
    )


def test_it_has_no_times(sums):
    with pytest.raises(MeasurementError, match="only machine code has times"):
        dlc.measure(dlc.build(*sums, target="toy"))
