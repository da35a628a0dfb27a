"""The way in: a loop-IR function becomes a C source and its header."""

from __future__ import annotations

from dlcompiler import dtypes
from dlcompiler.codegen.c import buffers
from dlcompiler.codegen.c.arithmetic import Arithmetic
from dlcompiler.codegen.c.dialect import C99, Dialect
from dlcompiler.codegen.c.expressions import Expressions
from dlcompiler.codegen.c.helpers import Helpers
from dlcompiler.codegen.c.interface import Codes, Interface
from dlcompiler.codegen.c.names import Names
from dlcompiler.codegen.c.statements import Statements, has_assertions
from dlcompiler.codegen.c.writer import Writer
from dlcompiler.codegen.lines import statement_lines
from dlcompiler.codegen.source import Source
from dlcompiler.codegen.threads import refuse_threads
from dlcompiler.errors import TargetError
from dlcompiler.ir import Allocate, Buffer, Cast, Expr, PrimFunc, Var, walk
from dlcompiler.target import Target

FAST_MATH = (
    "#ifdef __FAST_MATH__",
    '#error "compile without -ffast-math, which changes results"',
    "#endif",
)

UNINITIALISED = ("-Wmaybe-uninitialized",)
COMPARED = ("-Wbool-compare", "-Wtype-limits")
"""Warnings of gcc about what is meant: a temporary that is written and read under one condition, as
was shown before, and comparisons of conditions that are numbers, some of which always hold."""


def emit(func: PrimFunc, target: Target) -> Source:
    """Generate C for a lowered function.

    Parameters
    ----------
    func
        The function, without vector operations; an unrolled loop that is left in it is a loop.
    target
        Of kind ``"c"``.

    Returns
    -------
    Source
        C99 that can be compiled alone: it begins with its header. The function takes pointers to
        the arrays, in order, then the numbers in ``func.variables``, and returns 0 or the number
        of a message. A parallel loop is one of OpenMP, where the compiler is told to see it.

    Raises
    ------
    TargetError
        For loops that are bound to thread axes, vectors, and temporaries whose size is known only
        inside a loop.
    """
    refuse_threads(func, "C")
    _refuse_vectors(func)
    names = Names()
    symbol = names.new(func.name)
    operands: tuple[Buffer | Var, ...] = (*func.buffers, *func.variables)
    params = {param: names.new(param.name) for param in operands}
    helpers = Helpers(C99)
    writer = Writer(names)
    expressions = Expressions(writer, Arithmetic(C99, helpers))
    for param, name in params.items():
        if isinstance(param, Buffer):
            expressions.buffers[param] = name
        else:
            expressions.bind(param, name)
    codes = Codes(symbol)
    if temporaries := buffers.all_from_malloc(func.body):
        codes.add_no_memory(buffers.no_memory(temporaries))
    may_fail = bool(temporaries or func.checks) or has_assertions(func.body)
    statements = Statements(expressions, statement_lines(func), codes)
    statements.function(func.body, func.checks, may_fail=may_fail)
    interface = Interface(func, symbol, params, C99)
    header = interface.header(codes)
    unread = [
        (f"    (void){name};", 0)
        for param, name in params.items()
        if param not in expressions.read | expressions.written
    ]
    lines = [
        *((line, 0) for line in (*header, "", *_preamble(func, C99, helpers))),
        *((line, 1) for line in interface.declaration("restrict ")),
        ("{", 0),
        *unread,
        *writer.lines,
        ("}", 0),
    ]
    return Source(
        "\n".join(text for text, _ in lines) + "\n",
        "c",
        symbol,
        statements.uses_threads,
        tuple(number for _, number in lines),
        codes.messages,
        "\n".join(header) + "\n",
    )


def _preamble(func: PrimFunc, dialect: Dialect, helpers: Helpers) -> list[str]:
    """Return what stands between the header and the function."""
    lines = [f"#include <{name}>" for name in dialect.headers]
    lines += ["", *FAST_MATH, *_quieted(func), ""]
    for definition in helpers.definitions():
        lines += [*definition.splitlines(), ""]
    return lines


def _quieted(func: PrimFunc) -> list[str]:
    """Return the lines that keep gcc from warning of what is meant."""
    nodes = list(walk(func.body))
    warnings: list[str] = []
    if any(isinstance(node, Allocate) for node in nodes):
        warnings += UNINITIALISED
    if any(isinstance(node, Cast) and dtypes.is_bool(node.value.dtype) for node in nodes):
        warnings += COMPARED
    if not warnings:
        return []
    ignored = (f'#pragma GCC diagnostic ignored "{warning}"' for warning in warnings)
    return ["#if defined(__GNUC__) && !defined(__clang__)", *ignored, "#endif"]


def _refuse_vectors(func: PrimFunc) -> None:
    """Refuse operations on vectors, which the passes for C leave no one of."""
    for node in walk(func.body):
        if isinstance(node, Expr) and dtypes.lanes(node.dtype) > 1:
            raise TargetError(
                f"generate C code for {func.name}",
                "C has no vectors",
                got=f"an expression of dtype {node.dtype}",
                hint="lower(s, args, kind='c') leaves loops in their place",
            )
