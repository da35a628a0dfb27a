"""Small tensor programs for a VTA, scheduled, each with its meaning in NumPy.

A `Case` holds the schedule, its arguments and the reference. Arrays are in blocks: the last two
dimensions are an element of a memory.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.target.accelerators.vta import VtaConfig, vta

BLOCK = 16
GEMM = "vta_gemm_1x16x16"


def machine(**config):
    """Return a VTA of its own."""
    return vta("vta-test", VtaConfig(**config))


@dataclass(frozen=True)
class Case:
    """A scheduled program, and what it computes."""

    schedule: dlc.schedule.Schedule
    args: list[te.Tensor]
    reference: Callable[..., np.ndarray]
    low: int = -100
    high: int = 100

    def arrays(self, seed=0):
        """Return random inputs, in the range for which the reference is right."""
        rng = np.random.default_rng(seed)
        inputs = self.args[:-1]
        return [
            rng.integers(self.low, self.high, each.static_shape).astype(each.dtype)
            for each in inputs
        ]

    def build(self, accelerator):
        """Build it."""
        return dlc.build(self.schedule, self.args, target=accelerator.target)

    def check(self, kernel, seed=0):
        """Compare a kernel with the reference; values and the order of engines are random."""
        inputs = self.arrays(seed)
        out = np.full(self.args[-1].static_shape, 85, self.args[-1].dtype)
        kernel(*inputs, out, seed=seed)
        np.testing.assert_array_equal(out, self.reference(*inputs).astype(out.dtype))


def _blocks(*shape):
    return (*shape, 1, BLOCK)


def _placeholder(shape, dtype, name):
    return te.placeholder(shape, dtype, name=name)


def stages(accelerator, x, *functions):
    """Return ``x`` loaded, each function applied in a stage, stored as int8; with its schedule.

    A function takes what the stage before computes at an index, and the index.
    """
    shape, tensors = x.static_shape, []
    loaded = last = te.compute(shape, lambda *i: x(*i), "loaded")
    for n, function in enumerate(functions):
        before = last
        last = te.compute(shape, lambda *i, f=function, b=before: f(b(*i), *i), f"stage{n}")
        tensors.append(last)
    out = te.compute(shape, lambda *i: last(*i).astype("int8"), "out")
    s = te.create_schedule(out.op)
    for tensor in (loaded, *tensors):
        s[tensor].set_scope(accelerator.scope_of("acc"))
    return s, out


def chain(accelerator, rows, columns, *functions, reference, low=-100, high=100):
    """Return a case of elementwise stages."""
    x = _placeholder(_blocks(rows, columns), "int32", "x")
    s, out = stages(accelerator, x, *(lambda value, *_i, f=f: f(value) for f in functions))
    return Case(s, [x, out], reference, low, high)


def save_load_out(accelerator, n=6):
    """Load n by n elements, change nothing, store them."""
    return chain(accelerator, n, n, lambda v: v >> 0, reference=lambda x: x)


def alu_immediate(accelerator, operation, number, shape=(8, 8)):
    """Apply one operation with an immediate."""
    meant, computed = OPERATIONS[operation]
    return chain(
        accelerator, *shape, lambda v: computed(v, number), reference=lambda x: meant(x, number)
    )


def alu_register(accelerator, operation, shape=(8, 8)):
    """Apply one operation to two tensors."""
    meant, computed = OPERATIONS[operation]
    shape = _blocks(*shape)
    x, y = (_placeholder(shape, "int32", name) for name in "xy")
    loaded = [te.compute(shape, lambda *i, t=t: t(*i), f"{t.name}_loaded") for t in (x, y)]
    result = te.compute(shape, lambda *i: computed(loaded[0](*i), loaded[1](*i)), "result")
    out = te.compute(shape, lambda *i: result(*i).astype("int8"), "out")
    s = te.create_schedule(out.op)
    for tensor in (*loaded, result):
        s[tensor].set_scope(accelerator.scope_of("acc"))
    shift = operation in ("shl", "shr")
    return Case(s, [x, y, out], meant, 0 if shift else -100, 8 if shift else 100)


OPERATIONS = {
    "shl": (lambda x, n: x << n, lambda v, n: v << n),
    "shr": (lambda x, n: x >> n, lambda v, n: v >> n),
    "add": (lambda x, n: x + n, lambda v, n: v + n),
    "max": (np.maximum, te.maximum),
    "min": (np.minimum, te.minimum),
}
"""Name -> its meaning in NumPy, and in te."""


def relu(accelerator, shape=(8, 10)):
    """Clip to 0 … 127, by two operations."""
    return chain(
        accelerator, *shape, lambda v: te.maximum(v, 0), lambda v: te.minimum(v, 127),
        reference=lambda x: np.clip(x, 0, 127), low=-200, high=200,
    )  # fmt: skip


def shift_and_scale(accelerator, shape=(2, 8), shift=2, scale=3):
    """Add a number, and shift left."""
    return chain(
        accelerator, *shape, lambda v: v + shift, lambda v: v << scale,
        reference=lambda x: (x + shift) << scale, low=-10, high=10,
    )  # fmt: skip


def padded_load(accelerator, shape, before, after):
    """Load an image with zeros around it: (top, left) and (bottom, right)."""
    rows, columns = shape
    x = _placeholder(_blocks(rows, columns), "int32", "x")
    height, width = rows + before[0] + after[0], columns + before[1] + after[1]

    def padded(i, j, *rest):
        inside = te.all(
            i >= before[0], i < before[0] + rows, j >= before[1], j < before[1] + columns
        )
        return te.if_then_else(inside, x(i - before[0], j - before[1], *rest), 0)

    loaded = te.compute(_blocks(height, width), padded, "loaded")
    result = te.compute(loaded.static_shape, lambda *i: loaded(*i) + 0, "result")
    out = te.compute(loaded.static_shape, lambda *i: result(*i).astype("int8"), "out")
    s = te.create_schedule(out.op)
    for tensor in (loaded, result):
        s[tensor].set_scope(accelerator.scope_of("acc"))
    widths = ((before[0], after[0]), (before[1], after[1]), (0, 0), (0, 0))
    return Case(s, [x, out], lambda x: np.pad(x, widths))


def gemm(accelerator, o=4, n=1, m=4, *, threads=0):
    """Multiply matrices in blocks, shift, and clip; by virtual threads if there are some."""
    data = _placeholder((o, n, 1, BLOCK), "int8", "data")
    weight = _placeholder((m, n, BLOCK, BLOCK), "int8", "weight")
    inp = te.compute(data.static_shape, lambda *i: data(*i), "inp")
    wgt = te.compute(weight.static_shape, lambda *i: weight(*i), "wgt")
    ko, ki = te.reduce_axis((0, n), "ko"), te.reduce_axis((0, BLOCK), "ki")

    def product(i, j, b, c):
        a, w = inp[i, ko, b, ki].astype("int32"), wgt[j, ko, c, ki].astype("int32")
        return te.sum(a * w, axis=[ko, ki])

    acc = te.compute(_blocks(o, m), product, "acc")
    shifted = te.compute(acc.static_shape, lambda *i: acc(*i) >> 6, "shifted")
    above = te.compute(acc.static_shape, lambda *i: te.maximum(shifted(*i), 0), "above")
    clipped = te.compute(acc.static_shape, lambda *i: te.minimum(above(*i), 63), "clipped")
    out = te.compute(acc.static_shape, lambda *i: clipped(*i).astype("int8"), "out")
    s = te.create_schedule(out.op)
    s[inp].set_scope(accelerator.scope_of("inp"))
    s[wgt].set_scope(accelerator.scope_of("wgt"))
    computed = (acc, shifted, above, clipped)
    for tensor in computed:
        s[tensor].set_scope(accelerator.scope_of("acc"))
    i, j, b, c = acc.op.axis
    s[acc].reorder(ko, i, j, b, c, ki)
    s[acc].tensorize(b, te.tensor_intrin(GEMM))
    for tensor in (inp, wgt):
        s[tensor].compute_at(s[acc], ko)
    if threads:
        rows, columns, *_ = s[out].op.axis
        thread, columns = s[out].split(columns, nparts=threads)
        s[out].reorder(thread, rows, columns)
        s[out].bind(thread, te.thread_axis("cthread"))
        for tensor in computed:
            s[tensor].compute_at(s[out], rows)

    def reference(data, weight):
        total = np.einsum("onbi,mnci->ombc", data.astype("int32"), weight.astype("int32"))
        return np.clip(total >> 6, 0, 63)

    return Case(s, [data, weight, out], reference, -128, 128)


def convolution(accelerator, layer, *, groups=1, threads=1, size=8):
    """Convolve an image of `size` by `size`, shift, and clip.

    ``layer`` has the blocks of 16 input channels and of filters, the extent of the kernel, and the
    stride. Padding keeps the size at stride 1.
    """
    inner, filters, kernel, stride = layer
    pad = kernel // 2
    out_size = (size + 2 * pad - kernel) // stride + 1
    data = _placeholder((inner, size, size, 1, BLOCK), "int8", "data")
    weight = _placeholder(
        (filters, inner // groups, kernel, kernel, BLOCK, BLOCK), "int8", "weight"
    )

    def frame(c, y, x, *rest):
        inside = te.all(y >= pad, y < size + pad, x >= pad, x < size + pad)
        return te.if_then_else(inside, data(c, y - pad, x - pad, *rest), te.const(0, "int8"))

    shape = (inner, size + 2 * pad, size + 2 * pad, 1, BLOCK)
    inp = te.compute(shape, frame if pad else lambda *i: data(*i), "inp")
    wgt = te.compute(weight.static_shape, lambda *i: weight(*i), "wgt")
    rc, ki = te.reduce_axis((0, inner // groups), "rc"), te.reduce_axis((0, BLOCK), "ki")
    dy, dx = (te.reduce_axis((0, kernel), name) for name in ("dy", "dx"))
    own = inner // groups
    per_group = filters // groups

    def element(o, y, x, b, c):
        channel = te.floordiv(o, per_group) * own + rc if groups > 1 else rc
        left = inp[channel, y * stride + dy, x * stride + dx, b, ki].astype("int32")
        return te.sum(left * wgt[o, rc, dy, dx, c, ki].astype("int32"), axis=[rc, dy, dx, ki])

    acc = te.compute(_blocks(filters, out_size, out_size), element, "acc")
    shifted = te.compute(acc.static_shape, lambda *i: acc(*i) >> 7, "shifted")
    clipped = te.compute(
        acc.static_shape, lambda *i: te.minimum(te.maximum(shifted(*i), 0), 100), "clipped"
    )
    out = te.compute(acc.static_shape, lambda *i: clipped(*i).astype("int8"), "out")
    s = te.create_schedule(out.op)
    s[inp].set_scope(accelerator.scope_of("inp"))
    s[wgt].set_scope(accelerator.scope_of("wgt"))
    o, *_ = s[out].op.axis
    outer, _ = s[out].split(o, per_group if groups > 1 else max(filters // threads, 1))
    if threads > 1:
        s[out].bind(outer, te.thread_axis("cthread"))
    for tensor in (acc, shifted, clipped):
        s[tensor].set_scope(accelerator.scope_of("acc"))
        s[tensor].compute_at(s[out], outer)
    o, y, x, b, c = s[acc].op.axis
    s[acc].reorder(rc, o, y, dy, dx, x, b, c, ki)
    s[inp].compute_at(s[acc], rc)
    s[wgt].compute_at(s[acc], rc)
    s[acc].tensorize(b, te.tensor_intrin(GEMM))

    def reference(data, weight):
        image = np.pad(data.astype("int32"), ((0, 0), (pad, pad), (pad, pad), (0, 0), (0, 0)))
        total = np.zeros(acc.static_shape, "int32")
        for y, x in np.ndindex(kernel, kernel):
            part = image[:, y:, x:][:, : size + 2 * pad - kernel + 1, : size + 2 * pad - kernel + 1]
            part = part[:, ::stride, ::stride]
            for o in range(filters):
                mine = part[o // per_group * own :][:own]
                total[o] += np.einsum("ryxbk,rck->yxbc", mine, weight[o, :, y, x].astype("int32"))
        return np.clip(total >> 7, 0, 100)

    return Case(s, [data, weight, out], reference, -128, 128)
