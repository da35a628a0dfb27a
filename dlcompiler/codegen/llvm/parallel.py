"""Write parallel loops: outline the body as a function of a range of iterations.

For ``for i in parallel(n)`` in the function ``f`` there are

- ``f.parallel.0(begin, end, env)``, which the thread pool calls: it reads captured values from
  `env`;
- ``f.parallel.0.body(begin, end, …)``, the loop itself, with the captured values as parameters.
  Only parameters can be ``noalias``; without it LLVM emits slower vector code;

and in ``f`` an `env` on the stack and a call of ``dlc_parallel_for``.
"""

from __future__ import annotations

from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.codegen.llvm.addresses import span
from dlcompiler.codegen.llvm.types import identifier
from dlcompiler.codegen.llvm.writer import Function, Module
from dlcompiler.ir import (
    Allocate,
    Buffer,
    Expr,
    For,
    Let,
    Load,
    Prefetch,
    Region,
    Store,
    Var,
    free_vars,
    walk,
)


@dataclass(frozen=True)
class Captures:
    """The values and buffers that a loop uses from outside, in the order of appearance."""

    buffers: tuple[Buffer, ...]
    variables: tuple[Var, ...]


def captures(loop: For) -> Captures:
    """Return the values and buffers that `loop` uses from outside."""
    buffers: dict[Buffer, None] = {}
    variables: dict[Var, None] = {}
    own: set[Buffer | Var] = set()
    for node in walk(loop.body):
        match node:
            case Load(buffer) | Store(buffer) | Prefetch(buffer) | Region(buffer):
                buffers.setdefault(buffer)
            case Var():
                variables.setdefault(node)
            case Allocate(buffer, _):
                own.add(buffer)
                buffers.setdefault(buffer)
            case For(var) | Let(var):
                own.add(var)
    own.add(loop.var)
    for buffer in buffers:
        for extent in (*buffer.shape, *buffer.strides):
            if isinstance(extent, Expr):
                variables.update(dict.fromkeys(free_vars(extent)))
    return Captures(
        tuple(buffer for buffer in buffers if buffer not in own),
        tuple(variable for variable in variables if variable not in own),
    )


def buffer_parameter(buffer: Buffer, module: Module) -> str:
    """Return the type and attributes of a parameter that points to a buffer."""
    element_bytes = dtypes.bytes_of(buffer.dtype)
    size = span(buffer) * element_bytes if buffer.is_static else 0
    readable = f" dereferenceable({size})" if size else ""
    alone = "" if module.is_in_place else " noalias"
    return f"ptr{alone} align {element_bytes}{readable}"


def write_entry(module: Module, symbol: str, line: int, types: list[str]) -> None:
    """Add the function that the thread pool calls: it unpacks `env` and calls the loop's body."""
    w = Function(module, symbol, line)
    arguments = [
        f"i64 {w.parameter('begin', 'i64')}",
        f"i64 {w.parameter('end', 'i64')}",
    ]
    env = w.parameter("env", "ptr")
    for position, type_ in enumerate(types):
        address = _field(w, env, types, position)
        arguments.append(f"{type_} {w.value(f'load {type_}, ptr {address}')}")
    w.effect(f"call void @{identifier(symbol + '.body')}({', '.join(arguments)})")
    module.functions.append(w.finished("internal"))


def write_launch(
    w: Function, symbol: str, extent: str, types: list[str], operands: list[str]
) -> None:
    """Append the launch of a parallel loop, with its captured values packed in a struct."""
    env = f"%{w.name('env')}"
    w.prologue(f"{env} = alloca {_struct(types)}")
    for position, (type_, operand) in enumerate(zip(types, operands, strict=True)):
        w.effect(f"store {type_} {operand}, ptr {_field(w, env, types, position)}")
    launch = w.module.declare("dlc_parallel_for", "void", "ptr, ptr, i64, i64", "nounwind")
    w.effect(f"call void {launch}(ptr @{identifier(symbol)}, ptr {env}, i64 0, i64 {extent})")


def _struct(types: list[str]) -> str:
    return f"{{ {', '.join(types)} }}" if types else "{}"


def _field(w: Function, env: str, types: list[str], position: int) -> str:
    return w.pure(f"getelementptr inbounds {_struct(types)}, ptr {env}, i32 0, i32 {position}")
