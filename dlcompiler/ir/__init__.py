"""The loop IR: expressions, statements and functions, and the tools that read and rewrite them.

The whole grammar::

    PrimFunc  = (name, params: (Buffer | Var)*, outputs, body: Stmt, axes, symbols: Var*)
    Stmt      = For(var, extent, kind, body, origin, annotations)
                                      kind: serial parallel vectorized unrolled, or the thread
                                      axis of a device: blockIdx.x … threadIdx.z, vthread
              | Store(buffer, indices, value, origin, predicate?)
              | If(condition, then, otherwise?)
              | Seq(statements)
              | Allocate(buffer, body, origin, double?, window?)
              | Let(var, value, body)
              | Prefetch(buffer, indices)             a hint, reads nothing
              | Assert(condition, message)
              | Barrier()                             the threads of a block wait for each other
              | ExternCall(name, convention, args, origin)     code from outside, opaque
              | IntrinsicCall(intrinsic, mode, regions, dims, body, origin)
                                      machine code for what `body` declares, of these regions;
                                      mode: body reset update
    Expr      = Const(value, dtype) | Var(name, dtype)
              | Binary(op, a, b)    op: add sub mul div floordiv floormod truncdiv truncmod min max
                                        bitand bitor bitxor shl shr
              | Compare(op, a, b)   op: eq ne lt le gt ge
              | Logical(op, a, b)   op: and or                | Not(value)
              | Cast(value, dtype)  | Call(name, args, dtype)
              | Select(condition, a, b)                       both sides are evaluated
              | IfThenElse(condition, a, b)                   only the chosen side is evaluated
              | Load(buffer, indices, predicate?)
              | Ramp(base, stride, lanes) | Broadcast(value, lanes)
              | Region(buffer, indices, extents, mode)        an argument of such a call only
              | TensorLoad(tensor, indices)                                    gone after lowering
              | Reduce(reducer, values, axes, condition?, init?, index)        gone after lowering

A number of elements or iterations in a shape (`Extent`) is an int where it is known, else an
expression over the function's symbols, which are variables of dtype ``index``.

Semantics that every consumer (interpreter, code generator, simplifier) keeps:

- Dtype ``index`` (loop variables, extents, buffer indices) is a mathematical integer: it never
  overflows, and the simplifier may use that. All other integers are *data* and wrap around.
  An index that becomes data goes through an explicit ``Cast``.
- ``floordiv``/``floormod`` round toward minus infinity, ``truncdiv``/``truncmod`` toward zero.
  Integer division by zero gives 0 and its remainder 0; ``INT_MIN // -1`` wraps to ``INT_MIN``.
- ``min`` and ``max`` of floats propagate NaN; which of 0 and -0 is larger is not defined. Float
  arithmetic is IEEE; only the contraction of a multiply and an add into one FMA is allowed.
- Bit operations use two's complement, for an index with as many bits as it needs. A shift by the
  width or more, or by less than 0, shifts everything out: the result is 0, or -1 for ``shr`` of a
  negative number. ``shr`` of a signed integer keeps the sign. A shift of an index is built as a
  product or a floor division, and ``&`` with a mask of its lowest bits as a ``floormod``.
- Operations on float16 and bfloat16 round each time; those of bfloat16 are done in float32. The
  functions of a `Call` are listed in `dlcompiler.ir.functions`.
- A float is converted to an integer by truncation that saturates; NaN becomes 0.
- A bool in memory is a byte: 0 is false, every other value is true; stores write 0 or 1.
- A vector dtype is written ``float32x8``. The lanes of a vectorized loop run in any order.
- The iterations of parallel loops, and of loops bound to a thread axis, also run in any order.
  Those of ``blockIdx.*`` are the blocks of a launch, those of ``threadIdx.*`` the threads of a
  block, and those of ``vthread`` virtual threads, which one thread runs interleaved. Between two
  barriers the threads of a block run in any order. All threads of a block use the same buffer in
  ``shared`` memory; it is allocated outside their loops.
"""

from dlcompiler.ir.builder import BufferView, Builder
from dlcompiler.ir.expr import (
    Axis,
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Extent,
    IfThenElse,
    Load,
    Logical,
    Not,
    Ramp,
    Reduce,
    Reducer,
    Select,
    TensorHandle,
    TensorLoad,
    Var,
    as_expr,
    as_index,
    binary,
    cast,
    compare,
    const,
    index_const,
    logical,
)
from dlcompiler.ir.externs import call_extern, call_packed, call_pure_extern, decl_buffer
from dlcompiler.ir.func import PrimFunc
from dlcompiler.ir.intrinsic import (
    Intrinsic,
    IntrinsicCall,
    IntrinsicMode,
    Part,
    Routine,
    along,
    place_in,
    routine_statement,
)
from dlcompiler.ir.operators import Operators
from dlcompiler.ir.printer import Printed, format_expr, print_func
from dlcompiler.ir.rewrite import (
    combine,
    depth,
    free_vars,
    rewrite,
    substitute,
    tree_size,
    walk,
    walk_statements,
)
from dlcompiler.ir.specialize import condition_value, extent_value, specialize
from dlcompiler.ir.stmt import (
    PART,
    SHARED,
    SHARED_SCOPES,
    THREADS,
    WARP,
    Allocate,
    Assert,
    Barrier,
    Buffer,
    ExternCall,
    For,
    If,
    Let,
    LoopKind,
    Mode,
    Origin,
    Prefetch,
    Region,
    Seq,
    StepRef,
    Stmt,
    Store,
    ThreadTag,
    Window,
    extent_binary,
    extent_expr,
    extent_product,
    is_concurrent,
    is_in_block,
    is_one,
    is_sharer,
    is_thread,
    seq,
)
from dlcompiler.ir.structural import structural_equal, structural_key
from dlcompiler.ir.verify import verify_func

__all__ = [
    "PART",
    "SHARED",
    "SHARED_SCOPES",
    "THREADS",
    "WARP",
    "Allocate",
    "Assert",
    "Axis",
    "Barrier",
    "Binary",
    "Broadcast",
    "Buffer",
    "BufferView",
    "Builder",
    "Call",
    "Cast",
    "Compare",
    "Const",
    "Expr",
    "Extent",
    "ExternCall",
    "For",
    "If",
    "IfThenElse",
    "Intrinsic",
    "IntrinsicCall",
    "IntrinsicMode",
    "Let",
    "Load",
    "Logical",
    "LoopKind",
    "Mode",
    "Not",
    "Operators",
    "Origin",
    "Part",
    "Prefetch",
    "PrimFunc",
    "Printed",
    "Ramp",
    "Reduce",
    "Reducer",
    "Region",
    "Routine",
    "Select",
    "Seq",
    "StepRef",
    "Stmt",
    "Store",
    "TensorHandle",
    "TensorLoad",
    "ThreadTag",
    "Var",
    "Window",
    "along",
    "as_expr",
    "as_index",
    "binary",
    "call_extern",
    "call_packed",
    "call_pure_extern",
    "cast",
    "combine",
    "compare",
    "condition_value",
    "const",
    "decl_buffer",
    "depth",
    "extent_binary",
    "extent_expr",
    "extent_product",
    "extent_value",
    "format_expr",
    "free_vars",
    "index_const",
    "is_concurrent",
    "is_in_block",
    "is_one",
    "is_sharer",
    "is_thread",
    "logical",
    "place_in",
    "print_func",
    "rewrite",
    "routine_statement",
    "seq",
    "specialize",
    "structural_equal",
    "structural_key",
    "substitute",
    "tree_size",
    "verify_func",
    "walk",
    "walk_statements",
]
