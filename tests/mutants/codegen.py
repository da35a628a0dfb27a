"""Mistakes in the generation of machine code, and one in memory."""

from __future__ import annotations

from tests.mutants.mutant import Family
from tests.mutants.patching import Patch

CODEGEN = Family()
ARITHMETIC = "codegen/llvm/arithmetic.py"


@CODEGEN("ir/stmt.py")
def wrong_stride(patch: Patch) -> None:
    """Rows are as far apart as columns are many."""

    def wrong(original, shape):
        strides = original(shape)
        return (shape[0], *strides[1:]) if len(shape) == 2 else strides

    patch.function("ir.stmt:compact_strides", wrong)


@CODEGEN("codegen/llvm/addresses.py")
def strides_of_columns(patch: Patch) -> None:
    """Machine code walks a matrix by columns."""

    def wrong(original, self, buffer, indices):
        turned = tuple(reversed(indices)) if len(set(buffer.shape)) == 1 else indices
        return original(self, buffer, turned)

    patch.method("codegen.llvm.addresses:Addresses", "offset", wrong)


@CODEGEN(ARITHMETIC)
def comparison_unsigned(patch: Patch) -> None:
    """Machine code compares integers as if none were negative."""
    unsigned = {f"int{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)}
    patch.function(
        "codegen.llvm.arithmetic:compare",
        lambda original, w, op, dtype, a, b: original(w, op, unsigned.get(dtype, dtype), a, b),
    )


@CODEGEN(ARITHMETIC)
def division_truncates(patch: Patch) -> None:
    """Machine code rounds a quotient toward zero, not down."""
    other = {"floordiv": "truncdiv", "floormod": "truncmod"}
    patch.function(
        "codegen.llvm.arithmetic:divide",
        lambda original, w, op, *args: original(w, other.get(op, op), *args),
    )


@CODEGEN("codegen/llvm/memory.py")
def mask_ignored(patch: Patch) -> None:
    """Lanes that are off load what is there."""
    patch.function(
        "codegen.llvm.memory:load",
        lambda original, addresses, node, mask: original(addresses, node, None),
    )


@CODEGEN("codegen/llvm/statements.py")
def machine_loop_one_short(patch: Patch) -> None:
    """A loop in machine code ends one iteration early."""

    def wrong(original, self, stmt, begin, end, *, runs_once):
        end = str(int(end) - 1) if end.isdigit() and int(end) > 1 else end
        return original(self, stmt, begin, end, runs_once=runs_once)

    patch.method("codegen.llvm.statements:Statements", "loop", wrong)


@CODEGEN("codegen/llvm/memory.py")
def all_lanes_stored(patch: Patch) -> None:
    """Lanes that are off are stored, too."""
    patch.function(
        "codegen.llvm.memory:store",
        lambda original, addresses, node, value, mask: original(addresses, node, value, None),
    )


@CODEGEN("codegen/llvm/functions/exponential.py")
def coarse_powers(patch: Patch) -> None:
    """The polynomial of machine code's exp lacks its last coefficient."""
    patch.function(
        "codegen.llvm.functions.exponential:polynomial",
        lambda original, x, coefficients: original(x, coefficients[:-1]),
    )
