"""The workloads of matmul, dense and batch_matmul, and their common form `Product`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.errors import TuningError
from dlcompiler.ops.epilogues import Epilogue
from dlcompiler.ops.fours import LONGEST_VECTOR
from dlcompiler.ops.shapes import checked_dtype
from dlcompiler.ops.widening import DTYPES, result_dtype, stored, sums_dtype, zero_point_of
from dlcompiler.space import Workload
from dlcompiler.target import Target

LAYOUTS = ("NN", "NT", "TN", "TT")
MAX_EXTENT = 1 << 20
MAX_PANEL = 64
FEW_ROWS = 4
"""Rows of A up to which an int8 B is read as it is stored."""


@dataclass(frozen=True, slots=True)
class Product:
    """A product of matrices, or of stacks of them.

    Examples
    --------
    >>> Product.of(matmul_workload(m=6, n=8, k=4, layout="NT")).shapes
    {'A': (6, 4), 'B': (8, 4), 'C': (6, 8)}
    """

    m: int
    n: int
    k: int
    batch: tuple[int, ...]
    """Extent of the stack; () without a stack."""
    dtype: str
    """Dtype of A and B."""
    layout: str
    """For A and B each ``N``, or ``T`` for a matrix that is stored transposed."""
    epilogue: Epilogue
    packed: int
    """Columns in a panel of a packed B; 0: B is not packed, and stored as `layout` says."""
    weight_dtype: str
    """Dtype of B as it is stored; it is converted to that of the sums."""
    zero_point: int = 0
    """What A of int8 holds in place of 0: it is subtracted from each element."""

    @staticmethod
    def of(workload: Workload) -> Product:
        """Return the product that a workload describes."""
        params = workload.as_dict()
        batch = (int(params["batch"]),) if "batch" in params else ()
        text = str(params.get("epilogue", ""))
        return Product(
            int(params["m"]),
            int(params["n"]),
            int(params["k"]),
            batch,
            str(params["dtype"]),
            str(params.get("layout", "NT" if workload.op == "dense" else "NN")),
            Epilogue.read(text, channel=1 + len(batch), where=workload.op),
            int(params.get("packed", 0)),
            str(params.get("weight_dtype", params["dtype"])),
            int(params.get("zero_point", 0)),
        )

    @property
    def sums_dtype(self) -> str:
        """Dtype of the sums and of the epilogue's operands."""
        return sums_dtype(self.dtype)

    @property
    def result_dtype(self) -> str:
        """Dtype of C."""
        return result_dtype(self.dtype)

    def tile_lanes(self, target: Target) -> int:
        """Return the vector length for the columns of a register tile."""
        return tile_lanes(self.packed, target.lanes(self.sums_dtype))

    @property
    def left_lies_along_k(self) -> bool:
        """Whether a row of A is contiguous."""
        return self.layout[0] == "N" or self.m == 1

    @property
    def right_lies_along_k(self) -> bool:
        """Whether a column of B is contiguous."""
        return self.layout[1] == "T" or self.n == 1

    @property
    def goes_by_fours(self) -> bool:
        """Whether CPUs add four products of int8 at a time: see `dlcompiler.ops.gemm.fours`.

        B is copied for it, which few rows of A do not pay for. Vectors go along n.
        """
        if self.dtype != "int8" or 0 in (*self.batch, self.m, self.k):
            return False
        return self.n >= max(LONGEST_VECTOR, self.packed) and max(self.packed, self.m) > FEW_ROWS

    @property
    def steps(self) -> int:
        """Number of steps of the reduction: one for each k, or for four of them."""
        return -(-self.k // 4) if self.goes_by_fours else self.k

    @property
    def step_bytes(self) -> int:
        """Size of the numbers of A or B for one step and one sum [byte]."""
        return 4 if self.goes_by_fours else dtypes.bytes_of(self.sums_dtype)

    @property
    def panels(self) -> int:
        """Number of panels of a packed B."""
        return -(-self.n // self.packed)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of A, B and C as the kernel receives them."""
        m, n, k = self.m, self.n, self.k
        a = (k, m) if self.layout[0] == "T" else (m, k)
        b: tuple[int, ...] = (n, k) if self.layout[1] == "T" else (k, n)
        if self.packed:
            b = (self.panels, k, self.packed)
            if self.goes_by_fours:
                b = (self.panels, self.steps, self.packed, 4)
        return {"A": (*self.batch, *a), "B": (*self.batch, *b), "C": (*self.batch, m, n)}


def tile_lanes(columns: int, lanes: int) -> int:
    """Return the greatest vector length that divides both a tile's columns and `lanes`.

    Only a panel that was packed for other vectors needs shorter ones.

    Examples
    --------
    >>> tile_lanes(16, 8), tile_lanes(24, 16), tile_lanes(4, 16), tile_lanes(17, 8)
    (8, 8, 4, 1)
    """
    return math.gcd(columns, lanes)


def matmul_workload(
    *,
    m: int,
    n: int,
    k: int,
    dtype: str = "float32",
    layout: str = "NN",
    epilogue: str = "",
    packed: int = 0,
    weight_dtype: str = "",
    zero_point: int = 0,
) -> Workload:
    """Return the workload of a matrix multiplication.

    Parameters
    ----------
    m, n, k : int
        A has the shape ``(m, k)``, B ``(k, n)``, C ``(m, n)``.
    dtype : {"float32", "float64", "float16", "bfloat16", "int8"}
        Of A, B and C; the sums of 16-bit floats are float32, and products of int8 have int32
        sums and results. The operands of the epilogue are of the sums' dtype.
    layout : {"NN", "NT", "TN", "TT"}
        ``T`` for A or B that is stored transposed, ``(k, m)`` or ``(n, k)``.
    epilogue : str
        Steps of `dlcompiler.ops.epilogues`, along n.
    packed : int
        Columns in a panel of B, if it is packed (`prepack`): it has the shape
        ``(ceil(n / packed), k, packed)``, of int8 ``(ceil(n / packed), ceil(k / 4), packed, 4)``;
        0: it was not.
    weight_dtype : {"", "float16", "bfloat16"}
        Dtype of B alone, where A is of float32: B takes half the memory, and is converted as it is
        read; "": that of A.
    zero_point : int
        What A of int8 holds in place of 0: see `dlcompiler.ops.widening.zero_point_of`.
    """
    given = _extents("matmul", m=m, n=n, k=k) | {"dtype": checked_dtype(dtype, DTYPES, "matmul")}
    Epilogue.check(epilogue, dtype, "matmul")
    if layout not in LAYOUTS:
        raise TuningError("matmul", "no such layout", got=repr(layout), expected=", ".join(LAYOUTS))
    changed = {"layout": layout} if layout != "NN" else {}
    extras = _extras("matmul", epilogue, packed) | stored("matmul", dtype, weight_dtype)
    extras |= zero_point_of("matmul", zero_point, dtype)
    return Workload.of("matmul", **given, **changed, **extras)


def dense_workload(
    *, m: int, n: int, k: int, dtype: str = "float32", epilogue: str = "", packed: int = 0,
    weight_dtype: str = "",
    zero_point: int = 0,
) -> Workload:  # fmt: skip
    """Return the workload of a layer: rows of A ``(m, k)`` by weights B ``(n, k)``, transposed.

    The parameters are those of `matmul_workload`.
    """
    given = _extents("dense", m=m, n=n, k=k) | {"dtype": checked_dtype(dtype, DTYPES, "dense")}
    Epilogue.check(epilogue, dtype, "dense")
    extras = _extras("dense", epilogue, packed) | stored("dense", dtype, weight_dtype)
    extras |= zero_point_of("dense", zero_point, dtype)
    return Workload.of("dense", **given, **extras)


def batch_matmul_workload(
    *,
    batch: int,
    m: int,
    n: int,
    k: int,
    dtype: str = "float32",
    layout: str = "NN",
    epilogue: str = "",
    zero_point: int = 0,
) -> Workload:
    """Return the workload of products of stacked matrices, ``batch`` of each.

    The other parameters are those of `matmul_workload`.
    """
    plain = matmul_workload(
        m=m, n=n, k=k, dtype=dtype, layout=layout, epilogue=epilogue, zero_point=zero_point
    )
    return Workload.of("batch_matmul", **_extents("batch_matmul", batch=batch), **plain.as_dict())


def _extents(where: str, **extents: int) -> dict[str, int | str]:
    for name, extent in extents.items():
        if type(extent) is not int or not 0 <= extent <= MAX_EXTENT:
            raise TuningError(
                where, f"{name} is not an extent", got=repr(extent),
                expected=f"an int from 0 to {MAX_EXTENT}",
            )  # fmt: skip
    return dict(extents)


def _extras(where: str, epilogue: str, packed: int) -> dict[str, int | str]:
    """Return the optional parameters that differ from those of a plain product."""
    if type(packed) is not int or not 0 <= packed <= MAX_PANEL:
        raise TuningError(
            where, "not the width of a panel", got=repr(packed),
            expected=f"an int from 0 to {MAX_PANEL}",
        )  # fmt: skip
    extras: dict[str, int | str] = {"epilogue": epilogue} if epilogue else {}
    return extras | ({"packed": packed} if packed else {})
