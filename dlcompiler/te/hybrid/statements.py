"""Statements of hybrid script, translated to loop IR: the body of a stage.

======================================== =====================================================
``c = output_tensor(shape, dtype)``       an array of zeros to return; outside all loops
``t = allocate(shape, dtype, scope)``     an array of zeros until its loop or branch ends
``x = …``                                 a variable; one that is assigned again keeps its dtype
``c[i, j] = …``, ``c[i, j] += …``         a store, converted to the dtype of the array
``for i in range(begin, end):``           a loop; ``serial``, ``parallel``, ``vectorize``,
                                          ``unroll``, ``const_range`` (copies, for known
                                          numbers) and ``bind(tag, n)`` stand for ``range``
``if``, ``elif``, ``else``                a branch; a known condition selects one while parsing
``assert c, "text"``                      stops the program with the text if ``c`` does not hold
``return c``, ``return c, d``             the last statement
======================================== =====================================================
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import (
    THREADS,
    Assert,
    Buffer,
    BufferView,
    Builder,
    Const,
    Load,
    Var,
    as_expr,
    cast,
    walk,
)
from dlcompiler.te.definition import checked_data_dtype, checked_shape
from dlcompiler.te.extern.function import extern_op
from dlcompiler.te.extern.zeros import with_zeros
from dlcompiler.te.hybrid.expressions import BINARY, Expressions, Variable, is_known
from dlcompiler.te.hybrid.python import LOOPS, NAMES
from dlcompiler.te.hybrid.source import HybridError, Source
from dlcompiler.te.tensor import Tensor

MAX_COPIES = 1024


def script_tensors(
    source: Source, around: Mapping[str, Any], args: Sequence[Any]
) -> tuple[Tensor, ...]:
    """Define the tensors that a script returns when it is called with tensors and numbers.

    Parameters
    ----------
    source
        The script.
    around
        Numbers, by name, that the script uses from the surrounding code.
    args
        The arguments of the call.
    """
    return _Script(source, around).tensors(args)


class _Script:
    def __init__(self, source: Source, around: Mapping[str, Any]) -> None:
        self.source = source
        self.ib = Builder()
        self.scopes: list[dict[str, Any]] = [dict(around), {}]
        """Values of names: surrounding code, the script, then its loops and branches."""
        self.expressions = Expressions(source, self.look_up)
        self.inputs: dict[Tensor, Buffer] = {}
        self.outputs: dict[str, Buffer] = {}
        self.returned: list[str] | None = None
        self.assigned = Counter(
            node.id
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )
        again = (node.target for node in ast.walk(source.tree) if isinstance(node, ast.AugAssign))
        self.assigned.update(target.id for target in again if isinstance(target, ast.Name))

    def tensors(self, args: Sequence[Any]) -> tuple[Tensor, ...]:
        tree, where = self.source.tree, f"te.hybrid {self.source.name}"
        given = tree.args
        plain = not (given.vararg or given.kwarg or given.kwonlyargs or given.defaults)
        if not plain or given.posonlyargs:
            raise self.source.wrong(tree, "parameters must be plain names", got=ast.unparse(given))
        for parameter, arg in zip(given.args, args, strict=True):
            self.scopes[1][parameter.arg] = self.argument(parameter, arg)
        self.block(tree.body)
        if not self.returned:
            raise self.source.wrong(
                tree.body[-1], "a script must return arrays made by output_tensor"
            )
        makes = tuple(self.outputs[name] for name in self.returned)
        if unused := set(self.outputs) - set(self.returned):
            raise self.source.wrong(tree, "an output is not returned", got=", ".join(unused))
        inputs, body = self.inputs, with_zeros(self.ib.get(), makes)
        op = extern_op(self.source.name, tuple(inputs), tuple(inputs.values()), makes, body, where)
        return op.outputs

    def argument(self, node: ast.arg, arg: Any) -> Any:
        if isinstance(arg, Tensor):
            self.inputs.setdefault(arg, Buffer(arg.name, arg.shape, arg.dtype))
            return self.ib.buffer_ptr(self.inputs[arg])
        if isinstance(arg, list | tuple):
            return tuple(self.argument(node, item) for item in arg)
        if isinstance(arg, Const) and isinstance(arg.value, int):
            return arg.value
        if is_known(arg) or isinstance(arg, Const) or (isinstance(arg, Var) and arg.is_symbol):
            return arg
        raise self.source.wrong(
            node, f"the argument {node.arg} is neither a tensor nor a number", got=repr(arg)
        )

    # -- names ------------------------------------------------------------------------------------

    def look_up(self, node: ast.Name) -> Any:
        """Return the value of a name at this place of the script."""
        for scope in reversed(self.scopes):
            if node.id in scope:
                return scope[node.id]
        because = hint = None
        if node.id in self.assigned:
            because = "it is assigned in a loop or a branch that has ended"
        elif node.id not in NAMES:
            hint = "from surrounding code, a script can use only numbers and tuples of numbers"
        raise self.source.wrong(node, f"{node.id} is not defined here", because=because, hint=hint)

    @contextmanager
    def scope(self, names: Mapping[str, Any] | None = None) -> Iterator[None]:
        self.scopes.append(dict(names or {}))
        try:
            yield
        finally:
            self.scopes.pop()

    # -- statements -------------------------------------------------------------------------------

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for node in statements:
            if self.returned is not None:
                raise self.source.wrong(node, "return must be the last statement")
            try:
                self.statement(node)
            except HybridError:
                raise
            except ExpressionError as error:
                parts = {name: value for name, value in error.parts() if name != "excerpt"}
                problem = f"{error.operation}: {error.problem}"
                raise self.source.wrong(node, problem, **parts) from error

    def statement(self, node: ast.stmt) -> None:  # noqa: C901 - one case per node
        match node:
            case ast.Assign(
                [ast.Name(name) as target],
                ast.Call(ast.Name("output_tensor" | "allocate" as word), args, keywords),
            ):
                self.memory(target, name, word, self.memory_arguments(target, word, args, keywords))
            case ast.Assign([ast.Name(name) as target], value):
                self.variable(target, name, self.expressions.number(value))
            case ast.Assign([ast.Subscript() as target], value):
                view, indices = self.expressions.place(target)
                self.store(target, view, indices, self.expressions.number(value))
            case ast.AugAssign(ast.Name(name) as target, op, value) if type(op) in BINARY:
                old = self.expressions.number(ast.Name(name, ast.Load(), lineno=target.lineno))
                new = BINARY[type(op)](old, self.expressions.number(value))
                self.variable(target, name, new)
            case ast.AugAssign(ast.Subscript() as target, op, value) if type(op) in BINARY:
                view, indices = self.expressions.place(target)
                new = BINARY[type(op)](view[indices], self.expressions.number(value))
                self.store(target, view, indices, new)
            case ast.For(ast.Name(name), ast.Call(ast.Name(word), args, []), body, []):
                self.loop(node, name, word, args)
            case ast.If(test, body, orelse):
                self.branch(self.expressions.condition(test), body, orelse)
            case ast.Assert(test, ast.Constant(str(message))):
                self.ib.emit(Assert(as_expr(self.expressions.condition(test)), message))
            case ast.Return(ast.Name() | ast.Tuple() as value) if len(self.scopes) == 2:
                self.give(node, value.elts if isinstance(value, ast.Tuple) else [value])
            case ast.Pass() | ast.Expr(ast.Constant(str())):
                pass
            case _:
                raise self.source.wrong(node, "this statement is not part of hybrid script")

    def memory_arguments(
        self, node: ast.Name, word: str, args: Sequence[ast.expr], keywords: Sequence[ast.keyword]
    ) -> dict[str, Any]:
        """Return the arguments of ``output_tensor`` or ``allocate`` by their names."""
        names = ("shape", "dtype", "scope") if word == "allocate" else ("shape", "dtype")
        given = [*zip(names, args, strict=False), *((item.arg, item.value) for item in keywords)]
        known = {str(name): self.expressions.value(value) for name, value in given}
        is_each_once = len(known) == len(args) + len(keywords)
        if not is_each_once or not {"shape"} <= set(known) <= set(names):
            got = ", ".join(ast.unparse(part) for part in (*args, *keywords))
            raise self.source.wrong(
                node, f"{word} takes a shape and a dtype", got=got,
                expected=f"{word}({', '.join(names)})",
            )  # fmt: skip
        return known

    def memory(self, node: ast.Name, name: str, word: str, given: Mapping[str, Any]) -> None:
        """Make an array: an output, or a temporary."""
        if self.assigned[name] > 1:
            raise self.source.wrong(node, "an array cannot be assigned again", got=name)
        dtype = checked_data_dtype(given.get("dtype", "float32"), f"{word} {name}")
        extents = checked_shape(given["shape"], f"{word} {name}")
        if word == "allocate":
            scope = given.get("scope", "global")
            self.scopes[-1][name] = self.ib.allocate(dtype, extents, name, scope)
            return
        if len(self.scopes) > 2:
            raise self.source.wrong(node, "an output must be made outside all loops and branches")
        self.outputs[name] = Buffer(name, extents, dtype)
        self.scopes[-1][name] = self.ib.buffer_ptr(self.outputs[name])

    def variable(self, node: ast.Name, name: str, value: Any) -> None:
        """Assign to a variable.

        A variable that is assigned once is a name for its value; otherwise it is a buffer of one
        element. A value that contains loads is stored by a `Let`: what it reads may change before
        the variable is used.
        """
        known = next((scope[name] for scope in reversed(self.scopes[1:]) if name in scope), None)
        if known is None and self.assigned[name] == 1:
            is_plain = is_known(value) or not any(isinstance(part, Load) for part in walk(value))
            self.scopes[-1][name] = value if is_plain else self.ib.let(name, value)
            return
        expr = as_expr(value, known.view.dtype if isinstance(known, Variable) else None)
        own = "int32" if expr.dtype == "index" else expr.dtype
        if known is None:
            known = Variable(self.ib.allocate(own, (1,), name, "local"))
            self.scopes[-1][name] = known
        if not isinstance(known, Variable):
            raise self.source.wrong(
                node,
                f"{name} cannot be assigned",
                because="it is an argument, an array or a loop variable",
            )
        dtype = known.view.dtype
        if dtypes.promote(own, dtype) != dtype:
            raise self.source.wrong(
                node, f"the dtype of {name} cannot represent the value", got=f"{expr} ({own})",
                expected=dtype, hint=f"start with a wider dtype: {name} = {own}(…)",
            )  # fmt: skip
        known.view[0] = cast(expr, dtype)

    def store(self, node: ast.expr, view: BufferView, indices: tuple[Any, ...], value: Any) -> None:
        if view.buffer in self.inputs.values():
            raise self.source.wrong(node, "an input cannot be written to", got=ast.unparse(node))
        view[indices] = cast(as_expr(value, view.dtype), view.dtype)

    def branch(self, condition: Any, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> None:
        if is_known(condition):
            with self.scope():
                self.block(body if condition else orelse)
            return
        with self.ib.if_scope(condition), self.scope():
            self.block(body)
        if orelse:
            with self.ib.else_scope(), self.scope():
                self.block(orelse)

    def loop(self, node: ast.For, name: str, word: str, args: Sequence[ast.expr]) -> None:
        if any(name in scope for scope in self.scopes[1:]):
            raise self.source.wrong(
                node,
                f"the loop variable {name} is already a name of the script",
                hint="give it another name",
            )
        if word == "bind" and len(args) == 2:
            kind, bounds = self.expressions.value(args[0]), [0, self.expressions.number(args[1])]
            if kind not in THREADS:
                raise self.source.wrong(node, "no such thread axis", got=repr(kind))
        elif word in LOOPS and 1 <= len(args) <= 2:
            kind = "serial" if word in ("range", "const_range") else word
            values = [self.expressions.number(arg) for arg in args]
            bounds = values if len(values) == 2 else [0, *values]
        else:
            raise self.source.wrong(
                node, "not a loop of hybrid script", got=ast.unparse(node.iter),
                expected=f"{', '.join(LOOPS)} with (end) or (begin, end); or bind(tag, n)",
            )  # fmt: skip
        if word == "const_range":
            self.copies(node, name, bounds)
            return
        begin, end = bounds
        with self.ib.for_range(begin, end, name, kind=kind) as value, self.scope({name: value}):
            self.block(node.body)

    def copies(self, node: ast.For, name: str, bounds: Sequence[Any]) -> None:
        """Repeat the body for each value of a loop of `const_range`."""
        if not all(isinstance(bound, int) for bound in bounds):
            raise self.source.wrong(
                node, "the bounds of const_range must be known numbers", got=ast.unparse(node.iter)
            )
        values = range(*bounds)
        if len(values) > MAX_COPIES:
            raise self.source.wrong(
                node,
                "const_range repeats its body too often",
                got=len(values),
                expected=f"at most {MAX_COPIES}",
            )
        for value in values:
            with self.scope({name: value}):
                self.block(node.body)

    def give(self, node: ast.Return, values: Sequence[ast.expr]) -> None:
        names = [value.id for value in values if isinstance(value, ast.Name)]
        if len(names) != len(values) or any(name not in self.outputs for name in names):
            raise self.source.wrong(node, "a script must return arrays made by output_tensor")
        self.returned = names
