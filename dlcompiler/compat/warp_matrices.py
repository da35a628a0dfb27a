"""Classic calls for tensor cores, in terms of this project's intrinsics of a warp.

Classic code declares a tensor intrinsic whose body calls ``tir.tvm_load_matrix_sync``,
``tir.tvm_mma_sync`` and others, as CUDA's ``nvcuda::wmma`` has them. A matrix of these calls is a
tile of 16x16, 32x8 or 8x32 elements. It is divided here into the tiles of ``mma.sync``
(`dlcompiler.target.fragments`); products of 8x32 elements are computed as 32x8, transposed.

The expression that the code declares says what an intrinsic computes. A body that does something
else is refused. The number of a fragment, such as ``buffer.elem_offset // 256``, is not read: a
fragment is found by its place in the buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import (
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    IntrinsicMode,
    Reduce,
    Region,
    Stmt,
    TensorLoad,
    seq,
    structural_equal,
)
from dlcompiler.lowering.intrinsics import intrinsic_statement
from dlcompiler.te.intrinsics.tensor_cores import KINDS

FILL, LOAD, STORE, MULTIPLY = (
    "tir.tvm_fill_fragment",
    "tir.tvm_load_matrix_sync",
    "tir.tvm_store_matrix_sync",
    "tir.tvm_mma_sync",
)
ARITY = {FILL: 6, LOAD: 8, STORE: 8, MULTIPLY: 8}
"""Name of a call -> the number of its arguments; [1]."""
ABSENT = ("tir.tvm_bmma_sync",)
SHAPES = ((16, 16, 16), (32, 8, 16), (8, 32, 16))
"""Rows, columns and depth of the products that there are; [1]."""
SUFFIXES = {dtype: kind for kind, dtype in KINDS.items() if dtype != "int8"}
"""Dtype of the operands -> its name in the intrinsics."""
ROLES = {"wmma.matrix_a": "a", "wmma.matrix_b": "b", "wmma.accumulator": "c"}
"""Scope of a fragment -> the matrix that it holds."""
MEMORY_LAYOUTS = ("row_major", "col_major")

Shape: TypeAlias = tuple[int, int, int]
Dims: TypeAlias = tuple[int, int]
"""The dimensions of a buffer along which the rows and the columns of a matrix run."""
Refuse: TypeAlias = Callable[..., NoReturn]


@dataclass(frozen=True)
class MatrixCall:
    """A call for tensor cores, as ``tir.call_intrin`` returns it."""

    name: str
    args: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(getattr(a, 'name', str(a)) for a in self.args)})"


@dataclass(frozen=True)
class MatrixCalls:
    """The calls of a part of an intrinsic, as ``ir_builder`` returns them."""

    calls: tuple[MatrixCall, ...]


def matrix_call(name: str, args: Sequence[Any]) -> MatrixCall:
    """Return a call for tensor cores.

    Raises
    ------
    ExpressionError
        If there is no such call here, or its arguments are too many or too few.
    """
    where = f"call_intrin {name}"
    if name in ABSENT:
        raise ExpressionError(where, "products of single bits are not part of dlcompiler")
    if len(args) != ARITY[name]:
        raise ExpressionError(
            where, "wrong number of arguments", got=len(args), expected=ARITY[name]
        )
    return MatrixCall(name, tuple(args))


def translated(
    op: te.ComputeOp, ins: Sequence[Buffer], outs: Sequence[Buffer], made: Any, where: str
) -> Any:
    """Replace the calls for tensor cores in what ``fcompute`` of an intrinsic returns.

    Parameters
    ----------
    op : ComputeOp
        What the intrinsic declares.
    ins, outs : sequence of Buffer
        The buffers that ``fcompute`` got.
    made : object
        Its result.
    where : str
        Names the declaration in errors.

    Returns
    -------
    object
        Statements instead of the calls; a result without such calls is returned as it is.

    Raises
    ------
    ExpressionError
        If the calls do not compute what is declared.
    """
    parts = tuple(made) if isinstance(made, list | tuple) else (made,)
    parts = tuple(MatrixCalls((p,)) if isinstance(p, MatrixCall) else p for p in parts)
    if not any(isinstance(part, MatrixCalls) for part in parts):
        return made
    body = _Body(op, ins, outs[0], where)
    if len(parts) == 1:
        return body.statements(parts[0])
    whole, *rest = parts
    # Classic code gives the update for the whole, too: that would add to undefined sums.
    is_update = isinstance(whole, MatrixCalls) and [c.name for c in whole.calls] == [MULTIPLY]
    first = None if whole is None or is_update else body.statements(whole)
    return (first, *(None if part is None else body.statements(part) for part in rest))


@dataclass(frozen=True)
class _Matrix:
    """A matrix of a product, as a part of a buffer."""

    role: str
    """``"a"``, ``"b"`` or ``"c"``."""
    buffer: Buffer
    dims: Dims

    @property
    def extents(self) -> tuple[int, int]:
        """Rows and columns; [1]."""
        return self.buffer.static_shape[self.dims[0]], self.buffer.static_shape[self.dims[1]]


@dataclass(frozen=True)
class _Body:
    """The body of an intrinsic: its calls are checked against what it declares."""

    op: te.ComputeOp
    ins: Sequence[Buffer]
    out: Buffer
    where: str

    def refuse(self, problem: str, **parts: Any) -> NoReturn:
        raise ExpressionError(self.where, problem, **parts)

    def statements(self, part: Any) -> Stmt:
        """Return the statements for the calls of a body, or of its reset or update, in order."""
        if not isinstance(part, MatrixCalls):
            self.refuse(
                "calls for tensor cores and other statements are in one intrinsic", got=str(part)
            )
        does = {FILL: self.fill, LOAD: self.load, STORE: self.store, MULTIPLY: self.multiply}
        names = tuple(call.name for call in part.calls)
        if len(names) != 1 and names != (FILL, MULTIPLY):
            self.refuse(
                "these calls together are not supported", got=", ".join(names),
                expected=f"one call, or {FILL} before {MULTIPLY}",
            )  # fmt: skip
        return seq(does[call.name](call) for call in part.calls)

    # -- the calls -----------------------------------------------------------------------------

    def load(self, call: MatrixCall) -> Stmt:
        """Return the copy from memory to a fragment."""
        role = self.role_of(self.out)
        if role == "c":
            self.refuse(
                "sums cannot be loaded into a fragment", got=str(call),
                hint=f"start from {FILL}, and add afterwards",
            )  # fmt: skip
        return self.copy(call, role, self.out, self.ins[0])

    def store(self, call: MatrixCall) -> Stmt:
        """Return the copy of sums from a fragment to memory."""
        role = self.role_of(self.ins[0])
        if role != "c":
            self.refuse("only sums are stored", got=self.ins[0].scope, expected="wmma.accumulator")
        return self.copy(call, role, self.ins[0], self.out)

    def copy(self, call: MatrixCall, role: str, fragment: Buffer, memory: Buffer) -> Stmt:
        data, m, n, k, _, pointer, stride, layout = call.args
        shape = self.shape(m, n, k)
        self.is_buffer(data, fragment)
        self.is_whole(pointer, memory, "w" if role == "c" else "r")
        if not _is_copy(self.op):
            self.refuse(f"{call.name} copies, and the expression does not", got=str(self.op.body))
        dims, in_memory = self.matrix_dims(fragment), self.matrix_dims(memory)
        row_step, element_step = (memory.strides[dim] for dim in in_memory)
        if not _is_same(stride, row_step) or element_step != 1:
            self.refuse(
                f"the stride is not that of {memory.name}", got=str(stride),
                expected=f"{row_step}, as the buffer is declared",
            )  # fmt: skip
        if layout not in MEMORY_LAYOUTS:
            self.refuse("no such layout", got=repr(layout), expected=" or ".join(MEMORY_LAYOUTS))
        if layout == "col_major":
            dims, in_memory = dims[::-1], in_memory[::-1]
        mine, there = _Matrix(role, fragment, dims), _Matrix(role, memory, in_memory)
        self.fits(mine, shape)
        self.fits(there, shape)
        kind = self.kind_of(fragment.dtype, role)
        calls = []
        for own, other in zip(_tiles(mine, shape), _tiles(there, shape), strict=True):
            family = "mma_store" if role == "c" else f"mma_load_{own.role}"
            intrin = te.tensor_intrin(f"{family}_{kind}_{own.size[0]}x{own.size[1]}")
            calls.append(_call(intrin, "body", (other, own) if role == "c" else (own, other)))
        return seq(calls)

    def fill(self, call: MatrixCall) -> Stmt:
        """Return the assignment of zero to sums."""
        data, m, n, k, _, value = call.args
        number = value.value if isinstance(value, Const) else value
        if not isinstance(number, int | float) or number != 0:
            self.refuse("a fragment is filled with a number other than 0", got=str(value))
        self.is_buffer(data, self.out)
        return self.product(self.shape(m, n, k), "reset")

    def multiply(self, call: MatrixCall) -> Stmt:
        """Return the product that is added to sums."""
        sums, _, a, _, b, _, before, _ = call.args
        self.is_buffer(sums, self.out)
        self.is_buffer(before, self.out)
        c, left, right = self.matrices()
        self.is_buffer(a, left.buffer)
        self.is_buffer(b, right.buffer)
        m, n = (self.out.static_shape[dim] for dim in c.dims)
        return self.product(self.shape(m, n, left.buffer.static_shape[left.dims[1]]), "update")

    def product(self, shape: Shape, mode: IntrinsicMode) -> Stmt:
        c, a, b = self.matrices()
        for matrix in (c, a, b):
            self.fits(matrix, shape)
        kind = self.kind_of(a.buffer.dtype, "a")
        self.kind_of(c.buffer.dtype, "c")
        if b.buffer.dtype != a.buffer.dtype:
            self.refuse(
                "the matrices have different dtypes",
                got=f"{a.buffer.name} {a.buffer.dtype}, {b.buffer.name} {b.buffer.dtype}",
            )  # fmt: skip
        intrin = te.tensor_intrin(f"mma_{kind}_16x8x16")
        tiles = [tile for matrix in (c, a, b) for tile in _tiles(matrix, shape)]
        left = {tile.start[0]: tile for tile in tiles if tile.role == "a"}
        right = {tile.start[1]: tile for tile in tiles if tile.role == "b"}
        return seq(
            _call(intrin, mode, (tile, left[tile.start[0]], right[tile.start[1]]))
            for tile in tiles
            if tile.role == "c"
        )

    # -- what the calls name -------------------------------------------------------------------

    def shape(self, *given: Any) -> Shape:
        """Return rows, columns and depth of the product that a fragment is for."""
        shape = tuple(n.value if isinstance(n, Const) else n for n in given)
        if shape not in SHAPES:
            self.refuse(
                "there is no product of this shape", got="x".join(map(str, shape)),
                expected=", ".join("x".join(map(str, known)) for known in SHAPES),
                because="float16 and bfloat16 have these; int8, int4 and single bits are missing",
            )  # fmt: skip
        return shape[0], shape[1], shape[2]

    def role_of(self, fragment: Buffer) -> str:
        """Return which matrix a fragment holds, which its scope says."""
        if fragment.scope not in ROLES:
            self.refuse(
                f"{fragment.name} is no fragment", got=f"scope {fragment.scope!r}",
                expected=", ".join(ROLES),
                hint="declare its scope: tir.decl_buffer(…, scope='wmma.matrix_a')",
            )  # fmt: skip
        return ROLES[fragment.scope]

    def is_buffer(self, given: Any, wanted: Buffer) -> None:
        """Refuse another buffer than the one that the expression has in this place."""
        if given is not wanted:
            self.refuse(
                "the call uses another buffer than the expression",
                got=getattr(given, "name", str(given)), expected=wanted.name,
                hint="the buffers are those that the function gets: ins[0].data, outs[0].data",
            )  # fmt: skip

    def is_whole(self, pointer: Any, wanted: Buffer, mode: str) -> None:
        """Refuse a pointer to another buffer or to a part of it, or one for another access."""
        if not isinstance(pointer, Region):
            self.refuse(
                "the memory is no pointer", got=str(pointer),
                expected=f'{wanted.name}.access_ptr("{mode}")',
            )  # fmt: skip
        self.is_buffer(pointer.buffer, wanted)
        whole = wanted.access_ptr(mode)
        if not structural_equal(pointer, whole):
            self.refuse(
                f"the call does not access all of {wanted.name}", got=str(pointer),
                expected=str(whole),
            )  # fmt: skip

    def kind_of(self, dtype: str, role: str) -> str:
        """Return the name of a dtype in the intrinsics."""
        known = {"float32": "f32"} if role == "c" else SUFFIXES
        if dtype not in known:
            self.refuse(
                "tensor cores here have no matrix of this dtype", got=dtype,
                expected=", ".join(known),
            )  # fmt: skip
        return known[dtype]

    def matrix_dims(self, buffer: Buffer) -> Dims:
        """Return the two dimensions of a buffer that have more than one element."""
        dims = [dim for dim, extent in enumerate(buffer.static_shape) if extent > 1]
        if len(dims) != 2:
            self.refuse(f"{buffer.name} is no matrix", got=f"shape {buffer.static_shape}")
        return dims[0], dims[1]

    def fits(self, matrix: _Matrix, shape: Shape) -> None:
        """Refuse a matrix whose extents are not those of the product."""
        m, n, k = shape
        wanted = {"a": (m, k), "b": (k, n), "c": (m, n)}[matrix.role]
        if matrix.extents != wanted:
            self.refuse(
                f"{matrix.buffer.name} is not the matrix of a product of {m}x{n}x{k}",
                got="x".join(map(str, matrix.extents)), expected="x".join(map(str, wanted)),
            )  # fmt: skip

    def matrices(self) -> tuple[_Matrix, _Matrix, _Matrix]:
        """Return the matrices C, A and B of the declared product ``C[i, j] += A[i, k]*B[k, j]``."""
        axes = [axis.var for axis in self.op.axis if axis.static_extent > 1]
        depth = [axis.var for axis in self.op.reduce_axis if axis.static_extent > 1]
        loads = _factors(self.op.body)
        if loads is None or len(axes) != 2 or len(depth) != 1:
            self.refuse(
                "the expression is no product of matrices", got=str(self.op.body),
                expected="te.sum(A[i, k].astype('float32') * B[k, j].astype('float32'), axis=k)",
            )  # fmt: skip
        roles = {self.role_of(buffer): n for n, buffer in enumerate(self.ins)}
        if roles.keys() != {"a", "b"} or self.role_of(self.out) != "c":
            self.refuse(
                "a product needs one buffer of each scope",
                got=", ".join(buffer.scope for buffer in (*self.ins, self.out)),
                expected=", ".join(ROLES),
            )  # fmt: skip
        at = {load.tensor: _dims_of(load) for load in loads}
        left, right = (at[self.op.input_tensors[roles[role]]] for role in "ab")
        rows = next((axis for axis in axes if axis in left), axes[0])
        columns = next(axis for axis in axes if axis is not rows)
        (inner,) = depth
        if left.keys() != {rows, inner} or right.keys() != {inner, columns}:
            self.refuse("the expression is no product of matrices", got=str(self.op.body))
        result = {axis.var: dim for dim, axis in enumerate(self.op.axis)}
        return (
            _Matrix("c", self.out, (result[rows], result[columns])),
            _Matrix("a", self.ins[roles["a"]], (left[rows], left[inner])),
            _Matrix("b", self.ins[roles["b"]], (right[inner], right[columns])),
        )


@dataclass(frozen=True)
class _Tile:
    """A tile of ``mma.sync`` in a matrix, with its place in rows and columns of that product."""

    role: str
    region: Region
    dims: Dims
    start: tuple[int, int]
    size: tuple[int, int]


def _tiles(matrix: _Matrix, shape: Shape) -> Iterator[_Tile]:
    """Yield the tiles of a matrix; of a product with 8 rows, those of the transposed product."""
    role, dims = matrix.role, matrix.dims
    if shape[0] == 8:
        role, dims = {"a": "b", "b": "a", "c": "c"}[role], (dims[1], dims[0])
    extents = matrix.buffer.static_shape
    size = {"a": (16, 16), "b": (16, 8), "c": (16, 8)}[role]
    for row in range(0, extents[dims[0]], size[0]):
        for column in range(0, extents[dims[1]], size[1]):
            begin, length = [0] * len(extents), [1] * len(extents)
            begin[dims[0]], begin[dims[1]] = row, column
            length[dims[0]], length[dims[1]] = size
            region = matrix.buffer.region(begin, length, "r")
            yield _Tile(role, region, dims, (row, column), size)


def _call(intrin: te.TensorIntrin, mode: IntrinsicMode, tiles: Sequence[_Tile]) -> Stmt:
    """Return the call of an intrinsic on tiles, the result first."""
    regions, dims = [tile.region for tile in tiles], [tile.dims for tile in tiles]
    return intrinsic_statement(intrin, mode, regions, dims, ())


def _is_copy(op: te.ComputeOp) -> bool:
    """Tell whether each element of the result is the element of the input in the same place."""
    load = op.body
    if not isinstance(load, TensorLoad) or load.tensor.shape != op.output(0).shape:
        return False
    pairs = zip(load.indices, op.axis, strict=True)
    return all(index is axis.var or axis.static_extent == 1 for index, axis in pairs)


def _factors(body: Expr) -> tuple[TensorLoad, TensorLoad] | None:
    """Return the factors of a sum of products ``float32(A[…]) * float32(B[…])``, if it is one."""
    match body:
        case Reduce() if body.reducer.op == "add":
            (value,) = body.values
        case _:
            return None
    match value:
        case Binary("mul", Cast(TensorLoad() as a), Cast(TensorLoad() as b)):
            return (a, b) if value.dtype == "float32" else None
    return None


def _dims_of(load: TensorLoad) -> dict[Expr, int]:
    """Return the dimension that each variable alone is the index of; constants have none."""
    return {index: dim for dim, index in enumerate(load.indices) if not isinstance(index, Const)}


def _is_same(a: Any, b: Any) -> bool:
    """Tell whether two strides are the same number, or the same symbol."""
    a, b = (x.value if isinstance(x, Const) else x for x in (a, b))
    return a is b or (isinstance(a, int) and isinstance(b, int) and a == b)
