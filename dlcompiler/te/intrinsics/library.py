"""The tensor intrinsics that are shipped, in families: one computation for many sizes.

============  =====================  ==============================================================
name          sizes                  computes
============  =====================  ==============================================================
`gemm_f32`    ``m x n x k``          ``C[i, j] += A[i, k] * B[k, j]``, outer products in registers
`gemv_f32`    ``n x k``              ``C[j] += A[k] * B[k, j]``, one row of `gemm_f32`
`dot4_u8s8`   ``n x g``              ``C[j] += X[g, q] * W[g, j, q]``, q < 4: uint8 by int8, in
                                     int32
`dot4_s8s8`   ``n x g``              the same of int8 by int8
`bits_u32`    ``b x 32``             ``P[b] += ((X[t] >> b) & 1) << t``: bits of 32 numbers of uint8
`bits_u64`    ``b x 64``             the same of 64 numbers, in uint64
`mma_f16`      `16x8x16`              ``C[i, j] += A[i, k] * B[k, j]`` on tensor cores, in float32;
`mma_bf16`     `16x8x16`              the same of bfloat16
`mma_tf32`     `16x8x8`               the same of float32, rounded by `te.tf32`
`mma_s8`       `16x8x32`              the same of int8, in int32
`mma_bt_…`     as of `mma_…`          the same with ``B[j, k]``, for each kind
`mma_load_…`   of a tile              a tile of A (``a_f16``), B (``b_f16``) or B transposed
                                     (``bt_f16``), of each kind, into a fragment
`mma_store_…`  `16x8`                 a fragment of sums (``f32``, ``s32``) into memory
`vta_gemm`     ``b x o x k``          ``acc[i, j] += inp[i, k] * wgt[j, k]`` of int8, in int32, on
                                     VTA
============  =====================  ==============================================================

The name of an intrinsic is the family's name with the sizes: ``gemm_f32_6x16x64``. The last
dimension of each operand that is loaded as vectors must be contiguous. The threads of a warp
carry out `mma` and its loads and stores together: see `dlcompiler.target.fragments`.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Reduce
from dlcompiler.target import Target
from dlcompiler.target.accelerators import Accelerator, Instruction
from dlcompiler.target.fragments import WARP, Fragment, MatrixName
from dlcompiler.te.intrinsics.tensor_cores import KINDS, copy, product
from dlcompiler.te.intrinsics.tensor_intrin import (
    Strides,
    TensorIntrin,
    decl_tensor_intrin,
    declared_intrin,
)
from dlcompiler.te.language import compute, const, placeholder, reduce_axis
from dlcompiler.te.reducers.reductions import sum
from dlcompiler.te.tensor import ComputeOp, Tensor

NAME = re.compile(r"(\w+)_(\d{1,18}(?:x\d{1,18})*)")
MAX_RESULTS = 512
"""Most elements of one intrinsic's result: more than the registers of any machine hold; [1]."""

Declared = tuple[Tensor, Mapping[Tensor, Strides]]
"""The output of the computation, and the required strides."""


@dataclass(frozen=True)
class Family:
    """A family of intrinsics: one computation for many sizes."""

    name: str
    sizes: tuple[str, ...]
    """The dimensions that the numbers in a name give, in order."""
    declare: Callable[..., Declared]
    dtypes: tuple[str, ...]
    """Dtypes of the result and of the operands."""
    data: int
    """Number of sizes that are dimensions of the result; the others are reduced; [1]."""
    emitter: str
    """Name of the emitter: targets that have it in `Target.emits` are offered the family."""
    group: int = 1
    """Extent of an innermost reduced dimension that is not among the sizes; 1 if there is none."""
    fixed: tuple[int, ...] = ()
    """The only sizes that there are, if they are not free."""
    most: tuple[int, ...] = ()
    """The largest sizes, if there are any."""
    threads: int = 1
    """Number of neighbouring threads along x that carry it out together; [1]."""

    def fitting(self, data: Sequence[int], reduced: Sequence[int]) -> str | None:
        """Return the intrinsic whose axes have these extents, if there is one."""
        own = list(reduced)
        if self.group > 1:
            if not own or own.pop() != self.group:
                return None
            own = own or [1]
        sizes = (*data, *own)
        if len(data) != self.data or len(sizes) != len(self.sizes) or not _is_small(data):
            return None
        return f"{self.name}_{'x'.join(map(str, sizes))}"


def _is_small(data: Sequence[int]) -> bool:
    return math.prod(data) <= MAX_RESULTS


def tensor_intrin(name: str) -> TensorIntrin:
    """Return an intrinsic by its name: a shipped one, or one that was declared in this process.

    Parameters
    ----------
    name : str
        A family with sizes, such as ``gemv_f32_16x8``, or the `id` of a declared intrinsic.

    Returns
    -------
    TensorIntrin

    Raises
    ------
    ExpressionError
        If there is no intrinsic of this name.

    Examples
    --------
    >>> from dlcompiler import te
    >>> te.tensor_intrin("gemv_f32_16x8")
    TensorIntrin(gemv_f32_16x8: C[j] += A[k]*B[k, j])
    """
    found = (declared_intrin(name) or _shipped(name)) if type(name) is str else None
    if found is not None:
        return found
    hint = None
    if "#" in str(name):
        hint = "declare it before: te.decl_tensor_intrin(…), with the same name and contents"
    elif close := difflib.get_close_matches(str(name), FAMILIES, 1):
        family = FAMILIES[close[0]]
        hint = f"did you mean {family.name}_{'x'.join(family.sizes)}, with numbers?"
    raise ExpressionError(
        f"tensor intrinsic {name!r}", "there is no intrinsic of this name",
        expected=", ".join(f"{f.name}_{'x'.join(f.sizes)}" for f in FAMILIES.values()), hint=hint,
    )  # fmt: skip


@lru_cache(maxsize=256)
def _shipped(name: str) -> TensorIntrin | None:
    found = NAME.fullmatch(name)
    family = FAMILIES.get(found[1]) if found else None
    if found is None or family is None:
        return None
    sizes = tuple(map(int, found[2].split("x")))
    if len(sizes) != len(family.sizes) or 0 in sizes or not _is_small(sizes[: family.data]):
        return None
    if name != f"{family.name}_{'x'.join(map(str, sizes))}":
        return None
    if family.fixed and sizes != family.fixed:
        return None
    if family.most and any(size > most for size, most in zip(sizes, family.most, strict=True)):
        return None
    output, strides = family.declare(*sizes)
    op = output.op
    assert isinstance(op, ComputeOp)
    parts = (family.emitter,) * (3 if isinstance(op.body, Reduce) else 1)
    made = decl_tensor_intrin(
        op,
        lambda _ins, _outs: parts,
        name,
        strides,
    )
    return replace(made, id=name, threads=family.threads)


def gemm_tile(target: Target) -> tuple[int, int]:
    """Return the size of a float32 tile of a matrix product that fits the registers of a target.

    The tile is two vectors wide, so that each element of A is used twice. Four registers are left
    for two vectors of B and for two elements of A that are copied to all lanes.

    Parameters
    ----------
    target : Target
        The machine.

    Returns
    -------
    tuple of int
        Rows and columns of the tile; [1].

    Examples
    --------
    >>> from dlcompiler.target.presets import X86_64_AVX2
    >>> gemm_tile(X86_64_AVX2)
    (6, 16)
    """
    return max((target.vector_registers - 4) // 2, 1), 2 * target.lanes("float32")


def families_for(result: str, read: Sequence[str]) -> list[Family]:
    """Return the shipped families for a result and inputs of these dtypes, in any order.

    Those that a warp carries out are left out: which memory they need is not known here.
    """
    wanted = (result, sorted(read))
    own = (family for family in FAMILIES.values() if family.threads == 1)
    return [f for f in own if (f.dtypes[0], sorted(f.dtypes[1:])) == wanted]


def instruction_intrinsic(
    accelerator: Accelerator, instruction: Instruction
) -> TensorIntrin | None:
    """Return the intrinsic that a tensor instruction of an accelerator computes; None if unknown.

    An instruction without one of its own computes the shipped intrinsic that names it as emitter,
    in the sizes of its memories' elements.

    Examples
    --------
    >>> from dlcompiler.target.accelerators.vta import preset
    >>> vta = preset("vta-pynq")
    >>> instruction_intrinsic(vta, vta.instruction("gemm")).name
    'vta_gemm_1x16x16'
    """
    if instruction.intrinsic is not None:
        own: TensorIntrin = instruction.intrinsic
        return own
    family = next((f for f in FAMILIES.values() if f.emitter == instruction.name), None)
    shapes = [accelerator.memory(name).shape for name in instruction.operands.values()]
    if family is None or len(shapes) != len(family.dtypes):
        return None
    reduced = len(family.sizes) - family.data
    sizes = (*shapes[0][-family.data :], *shapes[1][-reduced:])
    return _shipped(f"{family.name}_{'x'.join(map(str, sizes))}")


def _vta_gemm(batch: int, out: int, k: int) -> Declared:
    inp, wgt = (
        placeholder((batch, k), "int8", name="inp"),
        placeholder((out, k), "int8", name="wgt"),
    )
    r = reduce_axis((0, k), name="k")

    def element(i: object, j: object) -> object:
        return sum(inp[i, r].astype("int32") * wgt[j, r].astype("int32"), axis=r)

    return compute((batch, out), element, name="acc"), {}


def _gemm(m: int, n: int, k: int) -> Declared:
    a, b = placeholder((m, k), name="A"), placeholder((k, n), name="B")
    r = reduce_axis((0, k), name="k")
    c = compute((m, n), lambda i, j: sum(a[i, r] * b[r, j], axis=r), name="C")
    return c, {b: (None, 1), c: (None, 1)}


def _gemv(n: int, k: int) -> Declared:
    a, b = placeholder((k,), name="A"), placeholder((k, n), name="B")
    r = reduce_axis((0, k), name="k")
    c = compute((n,), lambda j: sum(a[r] * b[r, j], axis=r), name="C")
    return c, {b: (None, 1), c: (1,)}


def _dot4(first: str) -> Callable[[int, int], Declared]:
    def declare(n: int, g: int) -> Declared:
        x = placeholder((g, 4), first, name="X")
        w = placeholder((g, n, 4), "int8", name="W")
        p, q = reduce_axis((0, g), name="g"), reduce_axis((0, 4), name="q")

        def element(j: object) -> object:
            product = x[p, q].astype("int32") * w[p, j, q].astype("int32")
            return sum(product, axis=[p, q])

        c = compute((n,), element, name="C")
        return c, {x: (None, 1), w: (None, 4, 1), c: (1,)}

    return declare


def _bits(word: str) -> Callable[[int, int], Declared]:
    """Return the declaration of words of the first bits of numbers."""

    def declare(planes: int, width: int) -> Declared:
        x = placeholder((width,), "uint8", name="X")
        t = reduce_axis((0, width), name="t")

        def element(b: Any) -> object:
            bit = (x[t].astype(word) >> b.astype(word)) & const(1, word)
            return sum(bit << t.astype(word), axis=t)

        return compute((planes,), element, name="P"), {x: (1,)}

    return declare


def _tensor_core_families() -> Iterator[Family]:
    """Yield the families of tensor cores: products, and copies from and to fragments."""

    def family(emitter: str, suffix: str, declare: Callable[..., Tensor], tile: Fragment) -> Family:
        is_product = emitter in ("mma", "mma_bt")
        depth = Fragment("b", tile.dtype).shape[:1] if is_product else ()
        shape = (16, 8) if is_product else tile.shape
        sizes = (*(shape[::-1] if emitter == "mma_load_bt" else shape), *depth)
        return Family(
            f"{emitter}_{suffix}", ("m", "n", "k")[: len(sizes)],
            lambda *sizes: (declare(*sizes), {}), (), 2, emitter, fixed=sizes, threads=WARP,
        )  # fmt: skip

    loads: tuple[tuple[str, MatrixName], ...] = (("a", "a"), ("b", "b"), ("bt", "b"))
    for kind, dtype in KINDS.items():
        yield family("mma", kind, product(kind, transposed=False), Fragment("b", dtype))
        yield family("mma_bt", kind, product(kind, transposed=True), Fragment("b", dtype))
        for name, matrix in loads:
            yield family(f"mma_load_{name}", kind, copy(dtype), Fragment(matrix, dtype))
    for kind, dtype in (("f32", "float32"), ("s32", "int32")):
        yield family("mma_store", kind, copy(dtype), Fragment("c", dtype))


_FLOATS = ("float32", "float32", "float32")
_U8S8, _S8S8 = ("int32", "uint8", "int8"), ("int32", "int8", "int8")

FAMILIES: dict[str, Family] = {
    "gemm_f32": Family("gemm_f32", ("m", "n", "k"), _gemm, _FLOATS, 2, "fma_tile"),
    "gemv_f32": Family("gemv_f32", ("n", "k"), _gemv, _FLOATS, 1, "fma_tile"),
    "dot4_u8s8": Family("dot4_u8s8", ("n", "g"), _dot4("uint8"), _U8S8, 1, "dot4", group=4),
    "dot4_s8s8": Family("dot4_s8s8", ("n", "g"), _dot4("int8"), _S8S8, 1, "dot4", group=4),
    "bits_u32": Family(
        "bits_u32", ("b", "t"), _bits("uint32"), ("uint32", "uint8"), 1, "bits", most=(8, 32)
    ),
    "bits_u64": Family(
        "bits_u64", ("b", "t"), _bits("uint64"), ("uint64", "uint8"), 1, "bits", most=(8, 64)
    ),
    **{family.name: family for family in _tensor_core_families()},
    "vta_gemm": Family(
        "vta_gemm", ("batch", "out", "k"), _vta_gemm, ("int32", "int8", "int8"), 2, "gemm"
    ),
}
"""Name -> family of shipped intrinsics."""
