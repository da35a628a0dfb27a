"""Trace PyTorch models into graphs of ATen operators."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.torch.operators import OPERATORS
from dlcompiler.graph.frontends.torch.package import OPERATION, torch_package


def exported(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return a model as an ``ExportedProgram`` of operators that have converters.

    Raises
    ------
    GraphError
        It is no model, or it cannot be traced.
    """
    torch = torch_package()
    if isinstance(module, torch.export.ExportedProgram):
        program = module
    elif isinstance(module, torch.nn.Module):
        if not isinstance(args, tuple | list):
            args = (args,)
        try:
            with torch.no_grad():
                program = torch.export.export(module, tuple(args), dict(kwargs))
        except Exception as error:  # tracing runs the user's code, which may raise anything
            raise GraphError(
                OPERATION, "torch.export cannot trace it", got=_short(error),
                hint="torch.export.export(module, args) shows all of the error",
            ) from error  # fmt: skip
    else:
        raise GraphError(OPERATION, "not a model", got=repr(module)[:200],
                         expected="a torch.nn.Module, or an ExportedProgram")  # fmt: skip
    try:
        with torch.no_grad():
            return program.run_decompositions(decompositions())
    except Exception as error:  # as above: rules of PyTorch run
        raise GraphError(OPERATION, "its operators cannot be decomposed",
                         got=_short(error)) from error  # fmt: skip


def decompositions() -> Any:
    """Return PyTorch's rules of decomposition, but for operators that have converters."""
    table = torch_package().export.default_decompositions()
    for overload in list(table):
        full = overload.name().removeprefix("aten::")
        if full in OPERATORS or full.split(".")[0] in OPERATORS:
            table.pop(overload, None)
    return table


def traced(function: Callable[..., Any], tensors: Sequence[Any]) -> Any:
    """Return the graph of a function of tensors, of operators that have converters.

    It is traced twice: the rules of decomposition may write to tensors, which the second time
    turns into values.

    Raises
    ------
    GraphError
        It cannot be traced.
    """
    torch = torch_package()
    make_fx = importlib.import_module("torch.fx.experimental.proxy_tensor").make_fx
    how = {"tracing_mode": "fake", "_allow_non_fake_inputs": True}
    try:
        with torch.no_grad():
            first = make_fx(function, decomposition_table=decompositions(), **how)(*tensors)
            pure = torch.func.functionalize(first, remove="mutations")
            return make_fx(pure, decomposition_table=decompositions(), **how)(*tensors)
    except Exception as error:  # as above
        raise GraphError(OPERATION, "it cannot be traced", got=_short(error)) from error


def _short(error: Exception) -> str:
    """Return the first line of an error that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]
