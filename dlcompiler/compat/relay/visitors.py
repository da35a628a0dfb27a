"""`ExprVisitor` and `ExprMutator`: one method for each kind of node.

They call themselves for what is below a node, as in Relay, so a chain of some hundred calls is too
deep for them. `dlcompiler.graph.ir.rewrite` has no such limit.
"""

from __future__ import annotations

from typing import Any

from dlcompiler import graph
from dlcompiler.compat.missing import Named
from dlcompiler.errors import GraphError
from dlcompiler.graph.ir import Op, with_children

_METHODS: dict[type, str] = {
    graph.Var: "visit_var", graph.Constant: "visit_constant", graph.Call: "visit_call",
    graph.Tuple: "visit_tuple", graph.TupleGetItem: "visit_tuple_getitem", graph.Let: "visit_let",
    graph.If: "visit_if", graph.Function: "visit_function",
    graph.GlobalVar: "visit_global_var", Op: "visit_op",
}  # fmt: skip


class ExprFunctor(Named):
    """Base: `visit` calls the method for the kind of a node, once for each node."""

    classic = "tvm.relay.ExprFunctor"

    def __init__(self) -> None:
        self.memo_map: dict[Any, Any] = {}
        """Node -> what its method returned."""

    def visit(self, expr: Any) -> Any:
        """Return what the method for a node returns.

        Raises
        ------
        GraphError
            If the nodes are too deep for Python's stack.
        """
        if expr in self.memo_map:
            return self.memo_map[expr]
        try:
            found = getattr(self, _METHODS[type(expr)])(expr)
        except RecursionError:
            raise GraphError(
                type(self).__name__, "the expression is too deep for a visitor",
                hint="dlcompiler.graph.ir.rewrite(expr, rule) has no such limit",
            ) from None  # fmt: skip
        self.memo_map[expr] = found
        return found


class ExprVisitor(ExprFunctor):
    """Visits all nodes; a subclass overrides methods."""

    classic = "tvm.relay.ExprVisitor"

    def visit_var(self, var: graph.Var) -> Any:
        """Visit a variable."""

    def visit_constant(self, const: graph.Constant) -> Any:
        """Visit a constant."""

    def visit_global_var(self, gvar: graph.GlobalVar) -> Any:
        """Visit the name of a function."""

    def visit_op(self, op: Op) -> Any:
        """Visit an operator."""

    def visit_call(self, call: graph.Call) -> Any:
        """Visit a call: what is called, then its arguments."""
        self.visit(call.op)
        for arg in call.args:
            self.visit(arg)

    def visit_tuple(self, tup: graph.Tuple) -> Any:
        """Visit a tuple."""
        for value in tup.fields:
            self.visit(value)

    def visit_tuple_getitem(self, op: graph.TupleGetItem) -> Any:
        """Visit a field of a tuple."""
        self.visit(op.value)

    def visit_let(self, let: graph.Let) -> Any:
        """Visit a let."""
        for part in (let.var, let.value, let.body):
            self.visit(part)

    def visit_if(self, i: graph.If) -> Any:
        """Visit a choice."""
        for part in (i.condition, i.then, i.otherwise):
            self.visit(part)

    def visit_function(self, f: graph.Function) -> Any:
        """Visit a function."""
        for part in (*f.params, f.body):
            self.visit(part)


class ExprMutator(ExprFunctor):
    """Makes another expression; a method returns what takes the place of a node."""

    classic = "tvm.relay.ExprMutator"

    def visit_var(self, var: graph.Var) -> Any:
        """Return what takes the place of a variable."""
        return var

    def visit_constant(self, const: graph.Constant) -> Any:
        """Return what takes the place of a constant."""
        return const

    def visit_global_var(self, gvar: graph.GlobalVar) -> Any:
        """Return what takes the place of the name of a function."""
        return gvar

    def visit_op(self, op: Op) -> Any:
        """Return what takes the place of an operator."""
        return op

    def visit_call(self, call: graph.Call) -> Any:
        """Return a call with other arguments."""
        return with_children(call, (self.visit(call.op), *map(self.visit, call.args)))

    def visit_tuple(self, tup: graph.Tuple) -> Any:
        """Return a tuple with other fields."""
        return with_children(tup, map(self.visit, tup.fields))

    def visit_tuple_getitem(self, op: graph.TupleGetItem) -> Any:
        """Return a field of another tuple."""
        return with_children(op, (self.visit(op.value),))

    def visit_let(self, let: graph.Let) -> Any:
        """Return a let with another value and body."""
        return with_children(let, map(self.visit, (let.var, let.value, let.body)))

    def visit_if(self, i: graph.If) -> Any:
        """Return a choice between other branches."""
        return with_children(i, map(self.visit, (i.condition, i.then, i.otherwise)))

    def visit_function(self, f: graph.Function) -> Any:
        """Return a function with another body, whose type inference finds anew."""
        made = with_children(f, map(self.visit, (*f.params, f.body)))
        if made is f or not isinstance(made, graph.Function):
            return made
        return graph.Function(made.params, made.body, None, made.attrs, made.span)
