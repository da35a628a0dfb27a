"""Open the schedule of a kernel in the Explorer."""

from __future__ import annotations

from dataclasses import replace

from dlcompiler import graph
from dlcompiler.errors import GraphError
from dlcompiler.graph import infer_types, types_of
from dlcompiler.graph.ir import Call, Constant, Function, Module, Var, post_order
from dlcompiler.graph.ir.nodes import Expr
from dlcompiler.graph.passes import PassContext
from dlcompiler.te import Tensor
from dlcompiler_widgets.explorer import Explorer
from dlcompiler_widgets.graphs.session import Session


def open_kernel(session: Session, number: int) -> Explorer:
    """Return an Explorer at the schedule of a kernel.

    Parameters
    ----------
    session : Session
        The state of a fusion view.
    number : int
        The number of the kernel in its graph.

    Raises
    ------
    DLCompilerError
        If there is no such kernel, or it cannot be built.
    """
    found = session.found
    if not 0 <= number < len(found.graph.kernels):
        raise GraphError("open a schedule", "there is no such kernel", got=str(number))
    name = found.graph.kernels[number].name
    model = graph.build(
        _alone(found.after, name), session.source.target,
        context=PassContext(0),
    )  # fmt: skip
    if not model.kernels:
        raise GraphError(
            "open a schedule", "the kernel computes nothing: it only gives a value another shape",
            got=name,
        )  # fmt: skip
    kernel = model.kernels[0]
    kernel.schedule.describe(name=name)
    tensors = [arg for arg in kernel.built.args if isinstance(arg, Tensor)]
    return Explorer(kernel.schedule, tensors, session.source.target, name=kernel.name)


def _alone(module: Module, name: str) -> Module:
    """Return a module with one kernel: what it reads of others becomes a parameter."""
    typed = infer_types(module)
    types = types_of(typed)
    found = (n for n in post_order(typed.main.body) if isinstance(n, Call) and n.name == name)
    call = next(found, None)
    if call is None:
        raise GraphError("open a schedule", "there is no such kernel", got=f"{name!r:.80}")
    params: list[Var] = []
    args: list[Expr] = []
    for n, arg in enumerate(call.args):
        if isinstance(arg, Constant):
            args.append(arg)
        else:
            params.append(Var(f"p{n}", types[arg]))
            args.append(params[-1])
    return Module.from_expr(Function(tuple(params), replace(call, args=tuple(args))))
