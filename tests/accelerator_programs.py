"""Programs of accelerators, small and large, for tests of what is shown of them."""

import functools

import numpy as np

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.simulate.accelerators import InstructionProgram, Step
from dlcompiler.target.accelerators import Accelerator, Engine, Memory, copy, tensor_op
from dlcompiler.target.accelerators.encodings import operand_fields
from dlcompiler.target.accelerators.vta import VtaConfig, vta


@functools.cache
def product(*, virtual_threads=2, name="gemv"):
    """Build a vector times a matrix of 256 by 256 for VTA, with a shift."""
    return dlc.build(*scheduled_product(virtual_threads), target="vta-pynq", name=name)


def scheduled_product(virtual_threads=2):
    """Schedule it: a tile of a row of the matrix for each virtual thread."""
    batch, block, n = 1, 16, 16
    gemm = te.tensor_intrin("vta_gemm_1x16x16")
    A = te.placeholder((1, n, batch, block), "int8", name="A")
    W = te.placeholder((n, n, block, block), "int8", name="W")
    inputs = te.compute(A.shape, lambda *i: A(*i), "A.inp")
    weights = te.compute(W.shape, lambda *i: W(*i), "W.wgt")
    ko, ki = te.reduce_axis((0, n), "ko"), te.reduce_axis((0, block), "ki")
    shape = (1, n, batch, block)
    acc = te.compute(
        shape,
        lambda b, c, bi, ci: te.sum(
            inputs[b, ko, bi, ki].astype("int32") * weights[c, ko, ci, ki].astype("int32"),
            axis=[ko, ki],
        ),
        "acc",
    )
    shifted = te.compute(shape, lambda *i: acc(*i) >> 8, "shifted")
    C = te.compute(shape, lambda *i: shifted(*i).astype("int8"), "C")
    s = te.create_schedule(C.op)
    scopes = ((inputs, "inp"), (weights, "wgt"), (acc, "acc"), (shifted, "acc"))
    for tensor, memory in scopes:
        s[tensor].set_scope(f"vta-pynq.{memory}")
    b, c, _, _ = s[C].op.axis
    co, ci = s[C].split(c, 4)
    thread, co = s[C].split(co, nparts=virtual_threads)
    s[C].reorder(thread, b, co, ci)
    if virtual_threads > 1:
        s[C].bind(thread, te.thread_axis("cthread"))
    for tensor in (acc, shifted):
        s[tensor].compute_at(s[C], co)
    axes, (k, kk) = s[acc].op.axis, s[acc].op.reduce_axis
    k_outer, k_inner = s[acc].split(k, 4)
    s[acc].reorder(k_outer, axes[0], k_inner, *axes[1:], kk)
    for tensor in (inputs, weights):
        s[tensor].compute_at(s[acc], k_outer)
    s[acc].tensorize(axes[2], gemm)
    return s, [A, W, C]


@functools.cache
def repeated(count, profile="B"):
    """Return a program of about `count` instructions: load, gemm and store again and again.

    Loads and products use two buffers of inputs in turn.
    """
    machine = vta("vta-pynq", VtaConfig(profile=profile))

    def step(name, pops=(), pushes=(), **fields):
        instruction = machine.instruction(name)
        row = tuple(fields.get(f, 0) for f in operand_fields(machine, instruction))
        return Step(instruction, row, pops, pushes)

    copy = {"y_size": 1, "x_size": 4, "x_stride": 4}
    compute = {"iter_out": 4, "iter_in": 1, "src_factor_out": 1}
    steps = [step("load uop", y_size=1, x_size=2, x_stride=2)]
    for n in range(count // 3):
        free = ("compute->load",) if n >= 2 else ()
        done = ("store->compute",) if n >= 2 else ()
        steps += [
            step("load inp", free, ("load->compute",), sram_base=n % 2 * 4, **copy),
            step(
                "gemm",
                ("load->compute", *done),
                ("compute->load", "compute->store"),
                uop_bgn=n % 2,
                uop_end=n % 2 + 1,
                **compute,
            ),
            step("store", ("compute->store",), ("store->compute",), **copy),
        ]
    left = min(count // 3, 2)
    for _ in range(left):
        steps.append(step("load inp", ("compute->load",)))
        steps.append(step("load uop", ("store->compute",)))
    steps.append(step("finish"))
    micro_ops = np.array([[0, 0, 0], [0, 4, 0]])
    return InstructionProgram(machine, tuple(steps), (), micro_ops, dram_bytes=1 << 16)


def toy():
    """Return an accelerator without a profile: its tensor instruction takes 3 + 2n cycles."""
    a, b = (te.placeholder((4, 4), "float32", name=name) for name in "ab")
    k = te.reduce_axis((0, 4), "k")
    c = te.compute((4, 4), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    product = te.decl_tensor_intrin(
        c.op, lambda ins, outs: ("toy", "toy.reset", "toy.update"), "toy_product"
    )
    return Accelerator(
        "toy_of_pictures",
        memories=[Memory("tile", (4, 4), "float32", 8), Memory("sum", (4, 4), "float32", 4)],
        engines=[Engine("load", 4), Engine("array", 4), Engine("store", 4)],
        instructions=[
            copy("load", into="tile", cycles=lambda n: 6 + n),
            tensor_op(
                "array", product, cycles=lambda n: 3 + 2 * n, memories=("sum", "tile", "tile")
            ),
            copy("store", out_of="sum", cycles=lambda n: 6 + n),
        ],
    )


@functools.cache
def toy_product(n=4):
    """Build a product of matrices of n by n tiles for the accelerator that has no profile."""
    machine = toy()
    A, B = (te.placeholder((n, n, 4, 4), "float32", name=name) for name in "AB")
    a, b = (te.compute(each.shape, lambda *i, t=each: t(*i), f"{each.name}.tile")
            for each in (A, B))  # fmt: skip
    ko, ki = te.reduce_axis((0, n), "ko"), te.reduce_axis((0, 4), "ki")
    total = te.compute(
        A.shape,
        lambda i, j, y, x: te.sum(a[i, ko, y, ki] * b[ko, j, ki, x], axis=[ko, ki]),
        "total",
    )
    C = te.compute(A.shape, lambda *i: total(*i), "C")
    s = te.create_schedule(C.op)
    for tensor, memory in ((a, "tile"), (b, "tile"), (total, "sum")):
        s[tensor].set_scope(machine.scope_of(memory))
    s[total].compute_at(s[C], s[C].op.axis[1])
    i, j, y, x = s[total].op.axis
    outer, inner = s[total].op.reduce_axis
    s[total].reorder(i, j, outer, y, x, inner)
    for tensor in (a, b):
        s[tensor].compute_at(s[total], outer)
    s[total].tensorize(y, machine.instruction("toy_product").intrinsic)
    return dlc.build(s, [A, B, C], target=machine, name="tiles")


def plain_product(rows=8, columns=8, inner=4):
    """Return a product of matrices on the blocks of VTA, without any step."""
    A = te.placeholder((rows, inner, 1, 16), "int8", name="A")
    W = te.placeholder((columns, inner, 16, 16), "int8", name="W")
    ko, ki = te.reduce_axis((0, inner), "ko"), te.reduce_axis((0, 16), "ki")
    sums = te.compute(
        (rows, columns, 1, 16),
        lambda x, y, i, j: te.sum(
            A[x, ko, i, ki].astype("int32") * W[y, ko, j, ki].astype("int32"), axis=[ko, ki]
        ),
        "sums",
    )
    C = te.compute(sums.shape, lambda x, y, i, j: sums[x, y, i, j].astype("int8"), "C")
    return te.create_schedule(C.op), [A, W, C]


def check_product(kernel, args):
    """Compare what a kernel of `plain_product` computes with NumPy."""
    random = np.random.default_rng(0)
    a, w = (random.integers(-128, 128, t.static_shape, "int8") for t in args[:2])
    kernel(a, w, c := np.empty(args[2].static_shape, "int8"))
    wanted = np.einsum("xkip,ykjp->xyij", a.astype("int32"), w.astype("int32")).astype("int8")
    np.testing.assert_array_equal(c, wanted)
