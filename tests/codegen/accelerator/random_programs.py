"""Random programs of blocks, scheduled at random for a VTA of a random size.

A program loads tensors with windows, strides, padding and turned dimensions, multiplies blocks or
reduces them, computes chains in the memory of results, and stores one or two outputs. Some go
through a stage in DRAM. A step or a program may be refused; a program that is built has to
compute what `te.evaluate` says, in any order of its engines.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import partial

import numpy as np

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import ScheduleError, TargetError
from dlcompiler.target.accelerators import Accelerator
from dlcompiler.target.accelerators.vta import VtaConfig, vta
from tests.codegen.accelerator.token_counts import most_tokens

GEMM = "vta_gemm_1x16x16"
BLOCK = (1, 16)
NAME = "vta-random"


@dataclass
class Case:
    """A scheduled program."""

    machine: Accelerator
    schedule: dlc.schedule.Schedule
    inputs: list[te.Tensor]
    outputs: list[te.Tensor]
    steps: list[str]
    """The steps of its schedule that were not refused."""


@dataclass
class Draft:
    """What is known of a program while it is made."""

    rng: random.Random
    inputs: list[te.Tensor] = field(default_factory=list)
    scopes: dict[te.Tensor, str] = field(default_factory=dict)
    products: list[te.Tensor] = field(default_factory=list)
    reductions: list[te.Tensor] = field(default_factory=list)
    intrinsics: dict[te.Tensor, object] = field(default_factory=dict)
    """Stages that an intrinsic computes, other than products."""
    machine: str = NAME
    rank: int = len(BLOCK)
    """Number of dimensions of a block."""

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def placeholder(self, shape: tuple[int, ...], dtype: str) -> te.Tensor:
        tensor = te.placeholder(shape, dtype, name=f"in{len(self.inputs)}")
        self.inputs.append(tensor)
        return tensor

    def stage(self, shape, function, name: str, memory: str = "") -> te.Tensor:
        tensor = te.compute(shape, function, name=f"{name}{len(self.scopes)}")
        self.scopes[tensor] = memory
        return tensor

    def loaded(
        self, outer: tuple[int, ...], block=BLOCK, dtype="int32", memory="acc", *, can_pad=True
    ) -> te.Tensor:
        """Return a tensor of outer dimensions and a block, loaded in one of many ways."""
        rng = self.rng
        order = (
            rng.sample(range(len(outer)), len(outer)) if self.chance(0.3) else [*range(len(outer))]
        )
        used = [dim for dim in order if not (self.chance(0.15) and len(outer) > 1)]
        ways = []
        for dim in used:
            extent = outer[dim]
            way = rng.choice(("same",) * 7 + ("pad", "stride", "offset", "flip"))
            low, high = rng.randrange(3), rng.randrange(3)
            if way == "pad" and not can_pad:
                way = "same"
            if way == "pad":
                low, high = min(low, extent - 1), min(high, max(extent - 1 - low, 0))
            ways.append((dim, way, low, high, extent))
        sizes = {
            "same": lambda low, high, n: n,
            "pad": lambda low, high, n: max(n - low - high, 1),
            "stride": lambda low, high, n: (n - 1) * (low + 1) + 1 + high,
            "offset": lambda low, high, n: n + low + high,
            "flip": lambda low, high, n: n + high,
        }
        shape = tuple(sizes[way](low, high, n) for _, way, low, high, n in ways)
        source = self.placeholder((*shape, *block), dtype)

        def value(*index):
            places, inside = [], []
            for (dim, way, low, _, extent), size in zip(ways, shape, strict=True):
                place = index[dim]
                if way == "pad":
                    if low:
                        inside.append(place >= low)
                    if low + size < extent:
                        inside.append(place < low + size)
                    place = place - low
                elif way == "stride":
                    place = place * (low + 1)
                elif way == "offset":
                    place = place + low
                elif way == "flip":
                    place = extent - 1 - place
                places.append(place)
            element = source[(*places, *index[len(outer) :])]
            if not inside:
                return element
            return te.if_then_else(te.all(*inside), element, te.const(0, dtype))

        return self.stage((*outer, *block), value, "load", memory)

    def product(self, outer: tuple[int, ...]) -> te.Tensor:
        """Return sums of products of blocks; the last outer dimension is that of the weights."""
        rng = self.rng
        *rows, filters = outer
        inner, taps = rng.randrange(1, 4), rng.choice((1, 1, 2, 3))
        stride = rng.choice((1, 1, 2))
        windowed = bool(rows) and taps > 1
        held = [*rows]
        if windowed:
            held[-1] = (held[-1] - 1) * stride + taps
        image = self.loaded((*held, inner), BLOCK, "int8", "inp")
        count = taps if windowed else 1
        weight = self.loaded((filters, inner, count), (16, 16), "int8", "wgt")
        axes = [te.reduce_axis((0, 16), "ki")]
        if inner > 1 or self.chance(0.5):
            axes.insert(0, te.reduce_axis((0, inner), "ko"))
        if windowed:
            axes.insert(0, te.reduce_axis((0, count), "dx"))
        by_name = {axis.var.name: axis for axis in axes}
        ki, ko, dx = by_name["ki"], by_name.get("ko", 0), by_name.get("dx", 0)

        def value(*index):
            *at, o, i, j = index
            if windowed:
                at[-1] = at[-1] * stride + dx
            left = image[(*at, ko, i, ki)].astype("int32")
            return te.sum(left * weight[o, ko, dx, j, ki].astype("int32"), axis=axes)

        made = self.stage((*outer, *BLOCK), value, "sums", "acc")
        self.products.append(made)
        return made

    def pooled(self, outer: tuple[int, ...]) -> te.Tensor:
        """Return a reduction of a loaded tensor over one more dimension, or windows of one."""
        taps = self.rng.randrange(1, 4)
        held = (*outer[:-1], outer[-1] + taps - 1) if self.chance(0.5) else (*outer, taps)
        source = self.loaded(held)
        k = te.reduce_axis((0, taps), "k")
        combine = self.rng.choice((te.sum, te.max, te.min))

        def value(*index):
            at, block = index[: len(outer)], index[len(outer) :]
            place = (*at, k) if len(held) > len(outer) else (*at[:-1], at[-1] + k)
            return combine(source[(*place, *block)], axis=k)

        made = self.stage((*outer, *BLOCK), value, "pool", "acc")
        self.reductions.append(made)
        return made

    def computed(self, known: list[te.Tensor], outer: tuple[int, ...]) -> te.Tensor:
        """Return a chain of operations on tensors of the same shape."""
        rng = self.rng
        count = rng.randrange(1, 5)
        flips = [self.chance(0.12) and rng.randrange(len(outer)) for _ in range(count + 1)]
        choices = [rng.choice(known) for _ in range(count + 1)]
        numbers = [rng.choice((0, 1, -1, 7, -100, 32767, -32768)) for _ in range(count)]
        shifts = [rng.randrange(0, 14) for _ in range(count)]
        kinds = [
            rng.choice(("add", "add", "max", "min", "shr", "shl", "sub", "number", "number"))
            for _ in range(count)
        ]

        def value(*index):
            def element(n):
                at = [*index]
                if flips[n] is not False:
                    at[flips[n]] = outer[flips[n]] - 1 - at[flips[n]]
                return choices[n][tuple(at)]

            total = element(count)
            for n, kind in enumerate(kinds):
                operations = {"add": lambda a, b: a + b, "max": te.maximum, "min": te.minimum}
                if kind in operations:
                    pair = (total, element(n)) if numbers[n] >= 0 else (element(n), total)
                    total = operations[kind](*pair)
                elif kind == "shr":
                    total = total >> shifts[n]
                elif kind == "shl":
                    total = total << shifts[n]
                elif kind == "sub":
                    total = total - te.const(max(numbers[n], -32767), "int32")
                else:
                    named = (te.maximum, te.minimum)[shifts[n] % 2]
                    total = named(total, te.const(numbers[n], "int32"))
            return total

        return self.stage((*outer, *BLOCK), value, "chain", "acc")

    def in_dram(self, tensor: te.Tensor, outer: tuple[int, ...]) -> te.Tensor:
        """Return a tensor stored, changed by the host, and loaded again."""
        stored = self.stage(tensor.shape, lambda *i: tensor[i].astype("int8"), "dram")
        wide = self.stage(tensor.shape, lambda *i: stored[i].astype("int32") * 3, "host")
        turned = self.chance(0.5)

        def value(x, *rest):
            return wide[(outer[0] - 1 - x if turned else x, *rest)]

        return self.stage(tensor.shape, value, "again", "acc")


def case(seed: int) -> Case:
    """Return a random program; the same one for the same seed."""
    draft = Draft(random.Random(seed))
    rng = draft.rng
    outer = tuple(rng.randrange(1, 6) for _ in range(rng.choice((1, 1, 2, 2, 3, 4))))
    known = [
        rng.choice((draft.loaded, draft.loaded, draft.product, draft.product, draft.pooled))(outer)
        for _ in range(rng.randrange(1, 4))
    ]
    for _ in range(rng.randrange(0, 4)):
        known.append(draft.computed(known, outer))
        if draft.chance(0.1):
            known.append(draft.in_dram(known[-1], outer))
    outputs = [_stored(draft, known[-1], outer, "out")]
    if draft.chance(0.25):
        outputs.append(_stored(draft, rng.choice(known), outer, "second"))
    machine = _machine(rng)
    schedule = te.create_schedule([tensor.op for tensor in outputs])
    steps = scheduled(draft, schedule, outputs)
    # Inputs that nothing uses are no arguments.
    used = reached(outputs)
    inputs = [tensor for tensor in draft.inputs if tensor in used]
    return Case(machine, schedule, inputs, outputs, steps)


def reached(outputs: list[te.Tensor]) -> set[te.Tensor]:
    """Return the tensors from which some outputs are computed."""
    found, waiting = set(), [*outputs]
    while waiting:
        more = set(getattr(waiting.pop().op, "input_tensors", ())) - found
        found |= more
        waiting += more
    return found


def _machine(rng: random.Random) -> Accelerator:
    def size(full: int, least: int) -> int:
        return full if rng.random() < 0.6 else rng.randrange(least, full)

    config = VtaConfig(
        LOG_UOP_BUFF_SIZE=size(15, 3),
        LOG_INP_BUFF_SIZE=size(15, 9),
        LOG_WGT_BUFF_SIZE=size(18, 12),
        LOG_ACC_BUFF_SIZE=size(17, 11),
        lowering=rng.choice(("exact", "exact", "classic")),
    )
    return vta(NAME, config)


def _stored(draft: Draft, tensor: te.Tensor, outer: tuple[int, ...], name: str) -> te.Tensor:
    """Return an output: a tensor as int8, perhaps with turned or swapped dimensions."""
    order = [*range(len(outer))]
    if draft.chance(0.3):
        draft.rng.shuffle(order)
    flipped = draft.rng.randrange(len(outer)) if draft.chance(0.15) else None
    shape = tuple(outer[dim] for dim in order)

    def value(*index):
        at = {dim: index[place] for place, dim in enumerate(order)}
        if flipped is not None:
            at[flipped] = outer[flipped] - 1 - at[flipped]
        places = [at[dim] for dim in range(len(outer))]
        return tensor[(*places, *index[len(outer) :])].astype("int8")

    return te.compute((*shape, *BLOCK), value, name=name)


def scheduled(draft: Draft, s, outputs: list[te.Tensor]) -> list[str]:
    """Schedule a program at random; steps that are refused are left out."""
    rng, done = draft.rng, []

    def step(text, function, *args):
        try:
            found = function(*args)
        except ScheduleError:
            return None
        done.append(text)
        return found

    read = reached(outputs)
    stages = [tensor for tensor in draft.scopes if tensor in read]
    for tensor in stages:
        if draft.scopes[tensor]:
            s[tensor].set_scope(f"{draft.machine}.{draft.scopes[tensor]}")
    loops: dict[te.Tensor, list] = {out: _tiled(draft, s, out, step) for out in outputs}
    homes: dict[te.Tensor, tuple] = {}
    for tensor in reversed(stages):
        places = _places(tensor, s, loops, homes)
        if places and draft.chance(0.8):
            owner, loop = rng.choice(places)
            attach = partial(s[tensor].compute_at, s[owner], loop)
            if step(f"{tensor.name} at {owner.name}", lambda a=attach: a() or True):
                homes[tensor] = owner, loop
        axes = [*tensor.op.axis][: -draft.rank]
        if tensor in draft.products or tensor in draft.reductions:
            loops[tensor] = _reduction(draft, s, tensor, step)
        else:
            loops[tensor] = _changed(draft, s, tensor, axes, step) if draft.chance(0.3) else axes
        if intrinsic := draft.intrinsics.get(tensor):
            s[tensor].tensorize(tensor.op.axis[-draft.rank], intrinsic)
        if tensor in homes and draft.chance(0.2):
            step(f"{tensor.name} twice", s[tensor].double_buffer)
        if draft.scopes[tensor] == "acc" and draft.chance(0.05):
            step(f"{tensor.name} inline", s[tensor].compute_inline)
        if draft.scopes[tensor] and draft.chance(0.1) and len(axes) > 1:
            step(f"{tensor.name} aligned", s[tensor].storage_align, axes[-2], 48, 16)
    return done


def _places(tensor: te.Tensor, s, loops: dict, homes: dict) -> list[tuple]:
    """Return loops at which a stage can be attached: those that are around all its readers."""
    readers = [
        stage.op.output(0) for stage in s.stages if tensor in getattr(stage.op, "input_tensors", ())
    ]
    around = []
    for reader in readers:
        mine, at = [(reader, loop) for loop in loops.get(reader, ())], reader
        while at in homes:
            owner, loop = homes[at]
            mine += [(owner, outer) for outer in loops[owner][: loops[owner].index(loop) + 1]]
            at = owner
        around.append(mine)
    return [place for place in around[0] if all(place in each for each in around[1:])]


def _tiled(draft: Draft, s, out: te.Tensor, step) -> list:
    """Divide an output into tiles, perhaps for virtual threads; return the loops."""
    rng = draft.rng
    outer_axes = [*out.op.axis][: -draft.rank]
    loops = _changed(draft, s, out, outer_axes, step)
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        loop = rng.choice(loops)
        count = rng.choice((1, 2, 2, 2, 3, 4))
        place = loops.index(loop)
        if draft.chance(0.5):
            pair = step(f"threads {count}", lambda at=loop, n=count: s[out].split(at, nparts=n))
            thread = pair[0] if pair else None
        else:
            pair = step(f"threads {count}", lambda at=loop, n=count: s[out].split(at, n))
            thread = pair[1] if pair else None
        if pair:
            loops[place : place + 1] = pair
            if step("bind", s[out].bind, thread, te.thread_axis("cthread")) is None:
                continue
    return loops


def _changed(draft: Draft, s, tensor: te.Tensor, axes: list, step) -> list:
    """Split, reorder and fuse the outer loops of a stage."""
    rng, loops = draft.rng, [*axes]
    for axis in axes:
        if draft.chance(0.4):
            factor = rng.choice((1, 2, 2, 3, 4))
            pair = step(f"{tensor.name} split {factor}", s[tensor].split, axis, factor)
            if pair:
                place = loops.index(axis)
                loops[place : place + 1] = pair
    if draft.chance(0.4):
        mixed = rng.sample(loops, len(loops))
        if step(f"{tensor.name} reorder", lambda: s[tensor].reorder(*mixed) or True):
            loops = mixed
    if len(loops) > 1 and draft.chance(0.2):
        place = rng.randrange(len(loops) - 1)
        fused = step(f"{tensor.name} fuse", s[tensor].fuse, loops[place], loops[place + 1])
        if fused is not None:
            loops[place : place + 2] = [fused]
    return loops


def _reduction(draft: Draft, s, tensor: te.Tensor, step) -> list:
    """Order the loops of a reduction, the block innermost, and use the intrinsic."""
    rng = draft.rng
    axes, block = tensor.op.axis[: -draft.rank], tensor.op.axis[-draft.rank :]
    *sums, last = tensor.op.reduce_axis
    if tensor in draft.reductions:
        sums, last = [last], None
    loops = []
    for axis in (*axes, *sums):
        pair = None
        if draft.chance(0.3):
            factor = rng.choice((1, 2, 2, 3))
            pair = step(f"{tensor.name} split {factor}", s[tensor].split, axis, factor)
        loops += pair or [axis]
    rng.shuffle(loops)
    inner = block if last is None else [*block, last]
    step(f"{tensor.name} reorder", lambda: s[tensor].reorder(*loops, *inner) or True)
    if last is not None:
        intrinsic = te.tensor_intrin(GEMM)
        step(f"{tensor.name} tensorize", lambda: s[tensor].tensorize(block[0], intrinsic) or True)
    return loops


def check(seed: int, orders: int, made: Case | None = None) -> str:
    """Build and run a program, by default that of the seed; return ``""``, or why it is refused.

    Raises
    ------
    AssertionError
        It computes something else than `te.evaluate`.
    """
    made = made or case(seed)
    args = [*made.inputs, *made.outputs]
    try:
        kernel = dlc.build(made.schedule, args, target=made.machine.target)
    except (ScheduleError, TargetError) as error:
        return str(error)
    for part in filter(None, kernel.parts):
        for queue in made.machine.queues:
            assert most_tokens(part)[queue.name] <= queue.depth
    generator = np.random.default_rng(seed)
    inputs = []
    for tensor in made.inputs:
        limits = np.iinfo(tensor.dtype)
        inputs.append(
            generator.integers(
                limits.min, limits.max, tensor.static_shape, tensor.dtype, endpoint=True
            )
        )
    given = dict(zip(made.inputs, inputs, strict=True))
    expected = [
        te.evaluate(tensor, {t: a for t, a in given.items() if t in reached([tensor])})
        for tensor in made.outputs
    ]
    for order in (None, *range(orders)):
        found = [np.full(t.static_shape, 85, t.dtype) for t in made.outputs]
        kernel(*inputs, *found, seed=order)
        for mine, right in zip(found, expected, strict=True):
            np.testing.assert_array_equal(mine, right)
    return ""
