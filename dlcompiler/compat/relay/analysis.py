"""What Relay's analyses tell about expressions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from dlcompiler import graph, ir
from dlcompiler.compat.relay.expressions import as_expr
from dlcompiler.compat.relay.modules import IRModule, module_of
from dlcompiler.errors import DLCompilerError, GraphError
from dlcompiler.graph.ir import Op, operands, post_order
from dlcompiler.graph.ir.nodes import EXPRESSIONS


def free_vars(expr: Any) -> list[graph.Var]:
    """Return the variables that nothing in an expression binds, in order of appearance."""
    return graph.ir.free_vars(as_expr(expr))


def bound_vars(expr: Any) -> list[graph.Var]:
    """Return the variables that functions and lets in an expression bind, in order."""
    node = as_expr(expr)
    bound = graph.ir.bound_vars(node)
    return [each for each in post_order(node) if isinstance(each, graph.Var) and each in bound]


def all_vars(expr: Any) -> list[graph.Var]:
    """Return all variables of an expression, in order of appearance."""
    return [each for each in post_order(as_expr(expr)) if isinstance(each, graph.Var)]


def free_type_vars(expr: Any, mod: Any = None) -> list[Any]:
    """Return the type variables: none, since functions have none."""
    del expr, mod
    return []


def post_order_visit(expr: Any, fvisit: Callable[[Any], Any]) -> None:
    """Call a function with each node of an expression, what is below it first."""
    for each in post_order(as_expr(expr)):
        fvisit(each)


def well_formed(expr: Any) -> bool:
    """Tell whether types can be inferred and each variable is bound where it is used."""
    try:
        graph.types_of(module_of(expr, "well_formed"))
    except DLCompilerError:
        return False
    return True


def list_op_names(mod: Any) -> list[str]:
    """Return the names of the operators that a module calls, without repetition."""
    return sorted(list_op_freqs(mod))


def list_op_freqs(mod: Any) -> dict[str, int]:
    """Return how often a module calls each operator."""
    nodes = module_of(mod, "list_op_freqs").nodes()
    ops = [n.op.name for n in nodes if isinstance(n, graph.Call) and isinstance(n.op, Op)]
    return dict(Counter(ops))


def count_layers(expr: Any, valid_ops: Any) -> int:
    """Return the largest number of calls of some operators on a way through an expression.

    Parameters
    ----------
    expr : Expr
        The expression or function.
    valid_ops : sequence of str
        Names of the operators.
    """
    node = as_expr(expr)
    depth: dict[Any, int] = {}
    for each in post_order(node):
        below = [each.body] if isinstance(each, graph.Function) else operands(each)
        most = max((depth[child] for child in below if child in depth), default=0)
        is_counted = isinstance(each, graph.Call) and getattr(each.op, "name", "") in valid_ops
        depth[each] = most + is_counted
    return depth[node]


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Tell whether two modules, expressions, types or loop programs are equal but for names.

    Parameters
    ----------
    lhs, rhs
        What is compared.
    map_free_vars : bool
        True: a free variable is equal to any one in its place.
    """
    if isinstance(lhs, IRModule) and isinstance(rhs, IRModule):
        if type(lhs) is IRModule and type(rhs) is IRModule:
            return graph.modules_equal(lhs.graph, rhs.graph)
        return str(lhs) == str(rhs)
    if not isinstance(lhs, EXPRESSIONS):
        is_type = isinstance(lhs, graph.TensorType | graph.TupleType | graph.FuncType)
        return lhs == rhs if is_type else bool(ir.structural_equal(lhs, rhs))
    if not isinstance(rhs, EXPRESSIONS):
        return False
    # `graph.structural_equal` compares free variables by their places.
    if not map_free_vars and free_vars(lhs) != free_vars(rhs):
        return False
    return graph.structural_equal(lhs, rhs)


def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """Fail unless two things are equal.

    Raises
    ------
    GraphError
        It shows both as text.
    """
    if not structural_equal(lhs, rhs, map_free_vars):
        raise GraphError("assert_structural_equal", "not equal", got=str(rhs), expected=str(lhs))


def structural_hash(node: Any, map_free_vars: bool = False) -> str:
    """Return a short text that is equal for equal modules and expressions."""
    del map_free_vars
    if isinstance(node, IRModule):
        return node.graph.structural_hash()
    return graph.structural_hash(as_expr(node))
