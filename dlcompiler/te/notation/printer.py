"""Printer of notation: tensor expressions as text that `te.notation` reads back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Extent, Var
from dlcompiler.te.notation.line import Domain, Line, Names, names_of
from dlcompiler.te.notation.python_names import is_free, variable_name
from dlcompiler.te.reducers.reductions import with_reducer
from dlcompiler.te.tensor import ComputeOp, ExternOp, PlaceholderOp, ScanOp, Tensor, post_order


def notation_text(*outputs: Tensor) -> str:
    """Write the expressions of tensors as notation: a line for each computed tensor.

    Parameters
    ----------
    *outputs : Tensor
        The results; the tensors that they depend on come first.

    Returns
    -------
    str
        Names that are not valid in notation (``A.local``) are changed, and made unique. A
        recurrence is written ``S = scan(init, update, state)``, which `te.notation` cannot read.

    Raises
    ------
    ExpressionError
        If a tensor is computed by `te.extern`, or an expression is too large.

    Examples
    --------
    >>> from dlcompiler import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> k = te.reduce_axis((0, 8), name="k")
    >>> S = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="S")
    >>> M = te.compute((4, 8), lambda i, j: A[i, j] / S[i] - 1, name="M")
    >>> print(te.notation_text(M))
    S[i] += A[i, k]
    M[i, j] = A[i, j] / S[i] - 1.0
    """
    names = names_of(outputs)
    domains: dict[str, Domain] = {}
    lines = []
    for op in post_order(outputs):
        if isinstance(op, ScanOp):
            lines.append(op.text(names.tensors))
        elif isinstance(op, ExternOp):
            raise _no_text(op)
        elif isinstance(op, ComputeOp):
            lines.append(Line(op, names, domains).text())
    return "\n".join(lines)


def signature_text(*outputs: Tensor) -> str:
    """Write the shapes and dtypes of tensors, and of those that they depend on, one in each line.

    Parameters
    ----------
    *outputs : Tensor
        The tensors.

    Examples
    --------
    >>> from dlcompiler import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> print(te.signature_text(te.compute((8, 4), lambda i, j: A[j, i], name="T")))
    A: float32[4, 8]
    T: float32[8, 4]
    """
    names = names_of(outputs)
    return "\n".join(
        f"{name}: {tensor.dtype}[{', '.join(str(names.extent(e)) for e in tensor.shape)}]"
        for tensor, name in names.tensors.items()
    )


def notation_arguments(*outputs: Tensor) -> dict[str, Any]:
    """Return the declarations with which `te.notation` reads `notation_text` back.

    Parameters
    ----------
    *outputs : Tensor
        The results, as for `notation_text`.

    Returns
    -------
    dict of str
        ``(shape, dtype)`` of each input, ``(first, end)`` of each axis that cannot be inferred from
        the text, and the dtype of each number that is in no shape. All are numbers and texts,
        except for the reducers of the user, which are functions.

    Raises
    ------
    ExpressionError
        If a tensor is a recurrence, or computed by `te.extern`: `te.notation` cannot read it.

    Examples
    --------
    >>> from dlcompiler import te
    >>> A = te.placeholder((te.var("n"), 9), name="A")
    >>> k = te.reduce_axis((2, 5), name="k")
    >>> S = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="S")
    >>> te.notation_arguments(S)
    {'A': (('n', 9), 'float32'), 'i': (0, 8), 'k': (2, 5)}
    """
    _refuse_scans(outputs)
    names = names_of(outputs)
    arguments: dict[str, Any] = {}
    lines = _lines(outputs, names)
    for tensor in (read for line in lines for read in line.op.input_tensors):
        if isinstance(tensor.op, PlaceholderOp):
            shape = tuple(names.extent(extent) for extent in tensor.shape)
            arguments[names.tensors[tensor]] = (shape, tensor.dtype)
    for line in lines:
        for axis, (first, end) in line.axes_to_declare(line.text()).items():
            arguments[axis] = (first, names.extent(end))
    named = set(re.findall(r"\b[^\W\d]\w*", repr(list(arguments.values()))))
    for symbol, name in names.symbols.items():
        if name not in named:
            arguments[name] = symbol.dtype
    for reducer, name in names.reducers.items():
        arguments[name] = with_reducer(reducer)
    return arguments


def notation_python(*outputs: Tensor) -> str:
    """Write Python code that declares the inputs of tensors and defines the tensors by notation.

    Parameters
    ----------
    *outputs : Tensor
        The results, as for `notation_text`.

    Returns
    -------
    str

    Raises
    ------
    ExpressionError
        If a tensor uses a reducer of the user, whose functions have no text, is a recurrence, or is
        computed by `te.extern`.

    Examples
    --------
    >>> from dlcompiler import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> print(te.notation_python(te.compute((3,), lambda i: A[i, 2], name="T")))
    A = te.placeholder((4, 8), "float32", name="A")
    T = te.notation("T[i] = A[i, 2]", A=A, i=(0, 3))
    """
    _refuse_scans(outputs)
    names = names_of(outputs)
    for reducer in names.reducers:
        raise ExpressionError(
            f"write {reducer.name} as Python", "a reducer made by te.comm_reducer has no text",
            hint="use notation_text, and declare the reducer to te.notation",
        )  # fmt: skip
    variables = _variables(names)
    code = [
        _symbol_code(symbol.dtype, name, variables.symbols[symbol])
        for symbol, name in names.symbols.items()
    ]
    for op in post_order(outputs):
        if isinstance(op, PlaceholderOp):
            tensor = op.output(0)
            code.append(
                f"{variables.tensors[tensor]} = te.placeholder({_tuple(variables, tensor.shape)}, "
                f'"{tensor.dtype}", name="{tensor.name}")'
            )
        elif isinstance(op, ExternOp):
            raise _no_text(op)
        elif isinstance(op, ComputeOp):
            code.append(_statement_code(Line(op, names, {}), names, variables))
    return "\n".join(code)


def python_variables(*outputs: Tensor) -> dict[Tensor | Var, str]:
    """Return the names of the variables for tensors and symbols in `notation_python`.

    They are those of the notation, except for names that Python uses: the variable of a tensor
    ``print`` is ``print_1``.
    """
    variables = _variables(names_of(outputs))
    return dict(_items(variables))


def _variables(names: Names) -> Names:
    """Return the names of variables: as in the notation, or others where Python uses the name."""
    used = {name for _, name in _items(names) if is_free(name)}
    chosen = {
        item: name if is_free(name) else variable_name(name, used) for item, name in _items(names)
    }
    return Names(
        {tensor: chosen[tensor] for tensor in names.tensors},
        {symbol: chosen[symbol] for symbol in names.symbols},
        names.reducers,
    )


def _items(names: Names) -> list[tuple[Tensor | Var, str]]:
    return [*names.tensors.items(), *names.symbols.items()]


def _refuse_scans(outputs: Iterable[Tensor]) -> None:
    for op in post_order(outputs):
        if isinstance(op, ScanOp):
            raise ExpressionError(
                f"write {op.name} as notation", "a recurrence cannot be read back from text",
                hint="share the code that defines it",
            )  # fmt: skip


def _no_text(op: ExternOp) -> ExpressionError:
    return ExpressionError(
        f"write {op.name} as notation", "a tensor computed by te.extern has no notation",
        hint="keep the script that makes it: s.trace.to_python() writes the schedule",
    )  # fmt: skip


def _lines(outputs: Iterable[Tensor], names: Names) -> list[Line]:
    domains: dict[str, Domain] = {}
    ops = post_order(outputs)
    for op in ops:
        if isinstance(op, ExternOp):
            raise _no_text(op)
    return [Line(op, names, domains) for op in ops if isinstance(op, ComputeOp)]


def _symbol_code(dtype: str, name: str, variable: str) -> str:
    kind = "" if dtype == "index" else f', "{dtype}"'
    return f'{variable} = te.var("{name}"{kind})'


def _statement_code(line: Line, names: Names, variables: Names) -> str:
    text, op = line.text(), line.op
    arguments = [f'"{text}"']
    arguments += [f"{names.tensors[x]}={variables.tensors[x]}" for x in op.input_tensors]
    words = set(re.findall(r"\b[^\W\d]\w*", text))
    for symbol, name in names.symbols.items():
        if name in words:
            arguments.append(f"{name}={variables.symbols[symbol]}")
    for axis, domain in line.axes_to_declare(text).items():
        arguments.append(f"{axis}={_tuple(variables, domain)}")
    targets = ", ".join(variables.tensors[tensor] for tensor in op.outputs)
    return f"{targets} = te.notation({', '.join(arguments)})"


def _tuple(names: Names, extents: tuple[Extent, ...]) -> str:
    """Return Python code for a tuple of extents."""
    items = []
    for extent in extents:
        text = re.sub(r"\b(min|max)\(", r"te.\1imum(", str(names.extent(extent)))
        items.append(re.sub(r"\btrunc(div|mod)\(", r"te.trunc\1(", text))
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
