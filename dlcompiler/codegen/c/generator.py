"""Entry point of the C generator: turn a kernel into a function, and a program into a source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.codegen.c import buffers
from dlcompiler.codegen.c.arithmetic import Arithmetic
from dlcompiler.codegen.c.dialect import C99
from dlcompiler.codegen.c.expressions import Expressions
from dlcompiler.codegen.c.helpers import Helpers
from dlcompiler.codegen.c.interface import Codes, Interface
from dlcompiler.codegen.c.names import Names
from dlcompiler.codegen.c.statements import Statements, has_assertions, reports_values
from dlcompiler.codegen.c.writer import Writer
from dlcompiler.codegen.cpu_kernel import only_kernel
from dlcompiler.codegen.interface import interface_of
from dlcompiler.codegen.lines import statement_lines
from dlcompiler.errors import TargetError, as_template
from dlcompiler.ir import Allocate, Buffer, Compare, Expr, Logical, PrimFunc, Var, walk
from dlcompiler.ir.program import Program
from dlcompiler.ir.rewrite import Node
from dlcompiler.runtime import source as runtime
from dlcompiler.runtime.source import Source, Text
from dlcompiler.target import Target

FAST_MATH = (
    "#ifdef __FAST_MATH__",
    '#error "compile without -ffast-math, which changes results"',
    "#endif",
)

_UNINITIALISED = {"GCC": ("-Wmaybe-uninitialized",), "clang": ()}
_COMPARED = {
    "GCC": ("-Wbool-compare", "-Wsign-compare", "-Wtautological-compare", "-Wtype-limits"),
    "clang": ("-Wtautological-compare",),
}
"""Warnings that are disabled, by compiler. A temporary that is written and read under the same
condition looks uninitialised, and a comparison that the user wrote may always hold."""


@dataclass(frozen=True, slots=True)
class Written:
    """A function in C."""

    func: PrimFunc
    codes: Codes
    interface: Interface
    """How C calls it."""
    called: runtime.Interface
    """How this process calls it."""
    lines: tuple[tuple[str, int], ...]
    """Its definition: each line, with that of the printed loop IR; 0 for none."""


def emit(program: Program, target: Target) -> Source:
    """Generate C for a lowered program.

    Parameters
    ----------
    program
        One kernel, without vector operations; an unrolled loop that is left in it is a loop.
    target
        One whose language is ``"c"``.

    Returns
    -------
    Source
        C99 that can be compiled alone: it begins with its header. The function takes pointers to
        the arrays, in order, then the numbers in ``func.variables``, and returns 0 or the number
        of a message. If messages contain numbers, it takes one more pointer and stores them there.
        A parallel loop has an OpenMP directive, which the compiler uses if OpenMP is enabled.

    Raises
    ------
    TargetError
        For loops that are bound to thread axes, vectors, and temporaries whose size is known only
        inside a loop.
    """
    func = only_kernel(program, "C")
    names, helpers = Names(), Helpers(C99)
    made = written(func, names.new(func.name), names, helpers)
    header = made.interface.header(made.codes)
    lines = [*((line, 0) for line in (*header, "", *preamble([func], helpers))), *made.lines]
    texts = {
        "c": Text(
            "\n".join(text for text, _ in lines) + "\n", tuple(number for _, number in lines)
        ),
        "header": Text("\n".join(header) + "\n"),
    }
    return Source("c", texts, made.called, program)


def written(func: PrimFunc, symbol: str, names: Names, helpers: Helpers) -> Written:
    """Write a kernel as a function in C.

    Parameters
    ----------
    func
        The kernel.
    symbol
        Its identifier.
    names
        Identifiers that it may not use for anything else.
    helpers
        Those of the source; what the function uses is added.

    Raises
    ------
    TargetError
        As of `emit`.
    """
    _refuse_vectors(func)
    operands: tuple[Buffer | Var, ...] = (*func.buffers, *func.variables)
    params = {param: names.new(param.name) for param in operands}
    writer = Writer(names)
    expressions = Expressions(writer, Arithmetic(C99, helpers))
    for param, name in params.items():
        if isinstance(param, Buffer):
            expressions.buffers[param] = name
        else:
            expressions.bind(param, name)
    codes = Codes(symbol)
    if temporaries := buffers.all_from_malloc(func.body):
        codes.add_no_memory(as_template(buffers.no_memory(temporaries)))
    may_fail = bool(temporaries or func.checks) or has_assertions(func.body)
    report = names.new("report") if reports_values(func.body) else ""
    statements = Statements(expressions, statement_lines(func), codes, report)
    statements.function(func.body, func.checks, may_fail=may_fail)
    interface = Interface(func, symbol, params, C99, report)
    unread = [
        (f"    (void){name};", 0)
        for param, name in params.items()
        if param not in expressions.read | expressions.written
    ]
    head = interface.declaration("" if func.is_in_place else "restrict ")
    lines = (*((line, 1) for line in head), ("{", 0), *unread, *writer.lines, ("}", 0))
    called = interface_of(
        func,
        symbol,
        codes.messages,
        uses_threads=statements.uses_threads,
        reports_values=bool(report),
    )
    return Written(func, codes, interface, called, lines)


def preamble(funcs: Sequence[PrimFunc], helpers: Helpers) -> list[str]:
    """Return the lines between the header of a source and its functions."""
    lines = [f"#include <{name}>" for name in helpers.dialect.headers]
    lines += ["", *FAST_MATH, *_quieted(funcs), ""]
    for definition in helpers.definitions():
        lines += [*definition.splitlines(), ""]
    return lines


def _quieted(funcs: Sequence[PrimFunc]) -> list[str]:
    """Return the pragmas that disable warnings that a correct program may cause."""
    nodes = [node for func in funcs for node in walk(func.body)]
    kinds = []
    if any(isinstance(node, Allocate) for node in nodes):
        kinds.append(_UNINITIALISED)
    if any(map(_may_be_decided, nodes)):
        kinds.append(_COMPARED)
    lines = {
        compiler: [
            f'#pragma {compiler} diagnostic ignored "{warning}"'
            for kind in kinds
            for warning in kind[compiler]
        ]
        for compiler in ("GCC", "clang")
    }
    if not kinds:
        return []
    if not lines["clang"]:
        return ["#if defined(__GNUC__) && !defined(__clang__)", *lines["GCC"], "#endif"]
    return [
        "#if defined(__clang__)", *lines["clang"],
        "#elif defined(__GNUC__)", *lines["GCC"], "#endif",
    ]  # fmt: skip


def _may_be_decided(node: Node) -> bool:
    """Tell whether a compiler may warn that a condition always holds.

    Comparisons of indices that always hold are already removed by `simplify`.
    """
    is_of_data = isinstance(node, Compare) and not dtypes.is_index(node.a.dtype)
    return is_of_data or isinstance(node, Logical)


def _refuse_vectors(func: PrimFunc) -> None:
    """Refuse vector operations; the pipeline for C makes none."""
    for node in walk(func.body):
        if isinstance(node, Expr) and dtypes.lanes(node.dtype) > 1:
            raise TargetError(
                f"generate C code for {func.name}",
                "C has no vectors",
                got=f"an expression of dtype {node.dtype}",
                hint="lower(s, args, target='c') keeps loops in their place",
            )
