"""Entry point of the LLVM generator: turn a program of one kernel into a module's text."""

from __future__ import annotations

from dlcompiler import dtypes
from dlcompiler.codegen.cpu_kernel import only_kernel
from dlcompiler.codegen.interface import interface_of
from dlcompiler.codegen.lines import statement_lines
from dlcompiler.codegen.llvm import allocations
from dlcompiler.codegen.llvm.calls import LIBM
from dlcompiler.codegen.llvm.debug import DebugInfo
from dlcompiler.codegen.llvm.parallel import buffer_parameter
from dlcompiler.codegen.llvm.statements import Statements, may_fail
from dlcompiler.codegen.llvm.types import value_type
from dlcompiler.codegen.llvm.writer import Function, Module
from dlcompiler.errors import TargetError
from dlcompiler.ir import Buffer, Expr, PrimFunc, walk
from dlcompiler.ir.program import Program
from dlcompiler.runtime.source import Source, Text
from dlcompiler.target import Target

_MATH = (*LIBM, "sqrt", "floor", "ceil", "trunc", "roundeven", "fabs", "fma")
RESERVED = frozenset(
    {"aligned_alloc", "free", "malloc", "memcpy", "memmove", "memset", *_MATH}
    | {f"{name}f" for name in _MATH}
)
"""Functions that the code may call, or LLVM inserts: a kernel of such a name would call itself."""


def emit(program: Program, target: Target) -> Source:
    """Generate LLVM IR for a lowered program.

    Parameters
    ----------
    program
        One kernel; a vectorized or unrolled loop that is left in it runs serially.
    target
        The machine; its triple stands in the text.

    Returns
    -------
    Source
        A module with ``void @name(ptr, …, i64, …)``: the pointers of the arrays, in order, none of
        which may overlap one that is written (but see `PrimFunc.is_in_place`), then those in
        ``func.variables``, then the status if there are messages. Parallel loops call
        ``void dlc_parallel_for(ptr body, ptr env, i64 begin, i64 end)`` of the runtime, which calls
        ``void body(i64 begin, i64 end, ptr env)`` for parts of the range.

    Raises
    ------
    TargetError
        For float16 where the machine does not convert it, vectors of more than 64 lanes, loops
        that are bound to thread axes, intrinsics without an emitter, and reserved names.
    """
    func = program.func
    if func.name in RESERVED or func.name.startswith(("llvm.", "dlc_")) or not func.name:
        raise TargetError(
            f"generate LLVM code for {func.name or 'a function'}",
            "the name of the function is reserved",
            got=repr(func.name),
            hint="give the function another name",
        )
    func = only_kernel(program, "LLVM")
    _check_float16(func, target)
    module = Module(
        DebugInfo(func.name),
        target.triple,
        has_fma=_has_fma(target),
        features=frozenset(name[1:] for name in target.features if name.startswith("+")),
        vector_bits=target.vector_bits,
        is_in_place=func.is_in_place,
    )
    w = Function(module, func.name, line=1)
    statements = Statements(w, statement_lines(func), is_outlined=False)
    for param in func.params:
        if isinstance(param, Buffer):
            pointer = w.parameter(param.name, buffer_parameter(param, module))
            statements.expressions.addresses.pointers[param] = pointer
    for variable in func.variables:
        operand = w.parameter(variable.name, value_type(variable.dtype))
        statements.expressions.variables[variable] = operand
    if temporaries := allocations.in_workspaces(func.body):
        module.messages.append(allocations.message(temporaries))
    if may_fail(func.body, is_outlined=False):
        statements.status = w.parameter("status", "ptr noalias")
    statements.write(func.body)
    module.functions.insert(0, w.finished())
    text, lines = module.finished()
    uses_threads = "dlc_parallel_for" in module.declarations
    interface = interface_of(func, func.name, module.messages, uses_threads=uses_threads)
    return Source("llvm", {"llvm": Text(text, lines)}, interface, program)


def _has_fma(target: Target) -> bool:
    """Tell whether the target has an instruction for ``a*b + c``, rounded once."""
    family = target.triple.partition("-")[0]
    if family in ("x86_64", "i686"):
        return target.has("fma") or target.has("avx512f")
    if family.startswith("arm"):  # of 32 bits
        return target.has("vfp4") or family.startswith("arm64")
    return not family.startswith("wasm")


def _check_float16(func: PrimFunc, target: Target) -> None:
    """Refuse float16 where LLVM would call functions that the C library may lack."""
    if not target.triple.startswith(("x86_64", "i686")) or target.has("f16c"):
        return
    for node in walk(func.body):
        if isinstance(node, Expr) and dtypes.element(node.dtype) == "float16":
            raise TargetError(
                f"generate LLVM code for {func.name}",
                "float16 needs a processor that converts it",
                got=target.name,
                expected="a target with the feature f16c",
                hint="compute in float32",
            )
