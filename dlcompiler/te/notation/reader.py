"""`te.notation`: tensor expressions read from text, which is parsed but never run as Python."""

from __future__ import annotations

import ast
import numbers
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import (
    Axis,
    Expr,
    Extent,
    Var,
)
from dlcompiler.te import language
from dlcompiler.te.broadcast import same_extent
from dlcompiler.te.definition import checked_shape, define_tensors
from dlcompiler.te.notation.build import Builder
from dlcompiler.te.notation.extents import Symbols, difference
from dlcompiler.te.notation.printer import (
    notation_arguments,
    notation_python,
    notation_text,
    signature_text,
)
from dlcompiler.te.notation.reductions import REDUCTIONS
from dlcompiler.te.notation.scan import read_statement
from dlcompiler.te.notation.source import WHERE, Source
from dlcompiler.te.notation.statement import Statement, Use, Words
from dlcompiler.te.tensor import Tensor

__all__ = ["notation", "notation_arguments", "notation_python", "notation_text", "signature_text"]

Domain: TypeAlias = tuple[int, Extent]


def notation(text: str, /, **declarations: Any) -> Any:
    """Define tensors by formulas in text, one statement in each line.

    Parameters
    ----------
    text : str
        The statements, of these forms:

        - ``C[i, j] = …`` defines each element;
        - ``C[i, j] += …`` sums over the axes that are not on the left;
        - ``C[i] = max(…, axis=k)`` reduces, also by ``sum``, ``prod`` and ``min``, and with
          ``where=condition`` and ``init=start``;
        - ``P[i], V[i] = argmax(…, axis=k)`` gives position and value, also by ``argmin``.

        Later statements may read tensors that earlier ones define.
    **declarations
        Declarations of names. For a tensor that is read: ``(shape, dtype)``, a shape (then it is
        float32), or a `Tensor`. For an axis: its extent, or ``(first, end)``; not needed if it
        indexes a tensor directly. For a result: ``(shape, dtype)``. For a number that the caller of
        the program gives: its dtype, or a `te.var`. For a reducer of the user: what
        `te.comm_reducer` returned. An extent may be text: a symbol, or a formula of symbols, as in
        ``A=("n", "m + 1")``.

    Returns
    -------
    Tensor or tuple of Tensor
        The tensors that the statements define, in order; a tuple if there are several.

    Raises
    ------
    ExpressionError
        If the text is not notation, or a declaration is missing or does not fit. The error shows
        the line with a caret under the place.

    Notes
    -----
    Expressions may contain ``+ - * / // % ** & | ^ ~ << >>``, comparisons and chains of them,
    ``and``, ``or``, ``not``, ``a if c else b``, numbers, ``inf``, ``nan``, ``True``, ``False``, the
    functions of `te` by their names, and ``max(a, b)`` and ``min(a, b)`` of two values. A dtype is
    a conversion, ``float32(x)``; with a number, ``int8(3)``, it is a literal. A bare number
    takes the dtype of the other operand, as in Python code.

    Examples
    --------
    >>> from dlcompiler import te
    >>> C = te.notation("C[i, j] += A[i, k] * B[k, j]", A=(4, 8), B=((8, 2), "float32"))
    >>> C
    Tensor(C: float32[4, 2])
    >>> te.notation_text(C)
    'C[i, j] += A[i, k]*B[k, j]'
    >>> S, M = te.notation("S[i] += A[i, k]; M[i, j] = a * A[i, j] / S[i]", A=("n", 8), a="float32")
    >>> M
    Tensor(M: float32[n, 8])
    >>> R = te.notation("R[i] = max(C[i, j], 0) if i < 3 else 0.0", C=C, j=1)
    Traceback (most recent call last):
    dlcompiler.errors.ExpressionError: te.notation: the axis j is not on the left
      hint      add up over it with '+=', or reduce: max(…, axis=j);
                if j is a tensor, index it: j[…]
      excerpt   R[i] = max(C[i, j], 0) if i < 3 else 0.0
                                ^
    """
    source = Source(text)
    try:
        tensors = _Program(source, declarations).tensors()
    except RecursionError:
        raise source.too_deep() from None
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


class _Program:
    """The statements of a text, and the meaning of their names."""

    def __init__(self, source: Source, declarations: Mapping[str, Any]) -> None:
        self.source = source
        self.declarations = declarations
        self.symbols = Symbols(declarations)
        self.reducers = {n: value for n, value in declarations.items() if _is_reducer(value)}
        words = Words(frozenset(self.symbols.by_name), frozenset(self.reducers))
        self.statements = [read_statement(source, node, words) for node in source.statements]
        self.known: dict[str, Tensor] = {}

    def tensors(self) -> list[Tensor]:
        """Return the tensors that the statements define, in order."""
        _check_names(self)
        defined: list[Tensor] = []
        for number, statement in enumerate(self.statements):
            for name in statement.tensors:
                self.read(statement, name, number)
            results = self.define(statement)
            for target, tensor in zip(statement.targets, results, strict=True):
                if target.id in self.known:
                    self.source.fail(target, f"{target.id} is defined twice")
                self.known[target.id] = tensor
            defined += results
        return defined

    def read(self, statement: Statement, name: str, number: int) -> None:
        """Make sure that a tensor that a statement reads is known, and indexed rightly."""
        subscripts = statement.tensors[name]
        if name not in self.known:
            if any(name in later.names for later in self.statements[number + 1 :]):
                self.source.fail(
                    subscripts[0], f"{name} is defined by a later statement",
                    expected="what a statement reads above it",
                )  # fmt: skip
            self.known[name] = _tensor(self, subscripts[0], name)
        tensor = self.known[name]
        for subscript in subscripts:
            indices = subscript.slice
            count = len(indices.elts) if isinstance(indices, ast.Tuple) else 1
            if count != tensor.ndim:
                plural = "" if tensor.ndim == 1 else "s"
                self.source.fail(
                    subscript, f"{name} has {tensor.ndim} dimension{plural}",
                    got=f"{count} indices",
                    expected=f"one for each dimension of {tensor.shape}",
                )  # fmt: skip

    def define(self, statement: Statement) -> tuple[Tensor, ...]:
        outputs = [_output(self, statement, target) for target in statement.targets]
        shapes = [output[0] for output in outputs if output is not None]
        domains = _domains(self, statement, shapes[0] if shapes else None)
        tensors = _define(self, statement, domains)
        for target, tensor, output in zip(statement.targets, tensors, outputs, strict=True):
            dtype = output and output[1]
            if dtype is not None and tensor.dtype != dtype:
                self.source.fail(
                    target, f"the declared dtype of {target.id} differs from its dtype",
                    got=tensor.dtype, expected=dtype, hint=f"convert the operands: {dtype}(…)",
                )  # fmt: skip
        return tensors


def _is_reducer(value: object) -> bool:
    return callable(value) and not isinstance(value, Tensor | type | np.dtype | Expr)


# -- declarations ---------------------------------------------------------------------------------


def _check_names(program: _Program) -> None:
    known = set(program.symbols.declared)
    for statement in program.statements:
        known |= statement.axes | {*statement.right, *statement.reduced}
        known |= set(statement.tensors) | statement.names
        known |= {statement.reducer} if statement.reducer else set()
    for name in program.declarations:
        if name not in known:
            raise ExpressionError(
                WHERE, f"{name} is declared, but does not occur in the text",
                expected=", ".join(sorted(known)), excerpt=program.source.excerpt(None),
            )  # fmt: skip


def _tensor(program: _Program, node: ast.Subscript, name: str) -> Tensor:
    if name not in program.declarations:
        program.source.fail(
            node, f"{name} is not declared",
            hint=f'declare it: te.notation(…, {name}=((…), "float32")), or a Tensor',
        )  # fmt: skip
    declared = program.declarations[name]
    if isinstance(declared, Tensor):
        return declared
    with program.source.pointing_at(node):
        return language.placeholder(*_shape_and_dtype(program, declared, name), name=name)


def _shape_and_dtype(program: _Program, declared: Any, name: str) -> tuple[tuple[Extent, ...], str]:
    where = f"{WHERE}, {name}"
    match declared:
        case [list() | tuple() as shape, str() | np.dtype() | type() as dtype]:
            return _shape(program, shape, where), dtypes.as_dtype(dtype)
    return _shape(program, declared, where), "float32"


def _shape(program: _Program, shape: Any, where: str) -> tuple[Extent, ...]:
    if not isinstance(shape, tuple | list):
        raise ExpressionError(
            where, "not a shape", got=repr(shape), expected='(n, m) or ((n, m), "float32")'
        )
    return checked_shape([program.symbols.extent(extent, where) for extent in shape], where)


def _output(
    program: _Program, statement: Statement, target: ast.Name
) -> tuple[tuple[Extent, ...], str | None] | None:
    """Return the declared shape and dtype of a result; None if it is not declared."""
    if target.id not in program.declarations:
        return None
    declared = program.declarations[target.id]
    with program.source.pointing_at(target):
        shape, dtype = _shape_and_dtype(program, declared, target.id)
    if len(shape) != len(statement.left):
        program.source.fail(
            target, f"{target.id} is declared with {len(shape)} dimensions", got=shape,
            expected=f"{len(statement.left)} extents",
        )  # fmt: skip
    has_dtype = len(declared) == 2 and isinstance(declared[0], tuple | list)
    return shape, dtype if has_dtype else None


# -- extents --------------------------------------------------------------------------------------


def _domains(
    program: _Program, statement: Statement, shape: tuple[Extent, ...] | None
) -> dict[str, Domain]:
    """Return the first value and the end of each axis, declared or inferred from its uses."""
    domains: dict[str, Domain] = {}
    for n, node in enumerate(statement.left):
        declared = None if shape is None else (0, shape[n])
        domains[node.id] = _domain(program, statement, node, declared)
        if domains[node.id][0] != 0:
            program.source.fail(
                node, f"the axis {node.id} is on the left, and must start at 0",
                got=_shown(domains[node.id]),
            )  # fmt: skip
    for node in statement.reduced.values():
        domains[node.id] = _domain(program, statement, node, None)
    return domains


def _domain(
    program: _Program, statement: Statement, node: ast.Name, declared: Domain | None
) -> Domain:
    source, name = program.source, node.id
    if name in program.declarations:
        with source.pointing_at(node):
            given = _given_domain(program, program.declarations[name], name)
        if declared is not None and not _same(given, declared):
            source.fail(
                node, f"the axis {name} is declared twice",
                got=f"{_shown(given)} and {_shown(declared)}",
            )  # fmt: skip
        declared = given
    if declared is None:
        return 0, _inferred_extent(program, statement, node)
    first, end = declared
    for use in statement.direct.get(name, []):
        extent = program.known[use.tensor].shape[use.dimension]
        if not use.is_guarded and _goes_beyond(declared, extent):
            source.fail(
                use.node, f"the axis {name} goes beyond {use.tensor}",
                got=f"{name} from {first} to {difference(end, 1)}",
                expected=f"within 0 to {difference(extent, 1)}, "
                f"dimension {use.dimension} of {use.tensor}",
            )  # fmt: skip
    return declared


def _goes_beyond(domain: Domain, extent: Extent) -> bool:
    """Tell whether a domain certainly exceeds a dimension; symbols are checked at the call."""
    first, end = domain
    if first == end if isinstance(end, int) else False:
        return False
    return first < 0 or (isinstance(end, int) and isinstance(extent, int) and end > extent)


def _given_domain(program: _Program, declared: Any, name: str) -> Domain:
    where = f"{WHERE}, {name}"

    def extent(value: Any) -> Extent:
        return program.symbols.extent(value, where)

    first: Extent
    match declared:
        case tuple() | list() if len(declared) == 2:
            first, end = map(extent, declared)
        case numbers.Real() | str() | Expr():
            first, end = 0, extent(declared)
        case _:
            raise ExpressionError(
                where, "not the domain of an axis", got=repr(declared), expected="n or (first, end)"
            )
    if not isinstance(first, int):
        raise ExpressionError(
            where, "the domain starts at a symbol", got=_shown((first, end)), expected="(0, n)",
            hint="start at a number, and add the symbol where the axis is used",
        )  # fmt: skip
    if isinstance(end, int) and end < first:
        raise ExpressionError(where, "the domain ends before it starts", got=repr(declared))
    return first, end


def _inferred_extent(program: _Program, statement: Statement, node: ast.Name) -> Extent:
    uses = statement.direct.get(node.id, [])
    certain = [use for use in uses if not use.is_guarded] or uses
    if not certain:
        program.source.fail(
            node, f"the extent of the axis {node.id} is not known",
            hint=f"give it: te.notation(…, {node.id}=n)",
        )  # fmt: skip

    def extent_of(use: Use) -> Extent:
        return program.known[use.tensor].shape[use.dimension]

    first, *others = certain
    extent = extent_of(first)
    for use in others:
        if not same_extent(extent_of(use), extent):
            program.source.fail(
                use.node, f"the extents of the axis {node.id} disagree",
                got=f"{extent_of(use)} in dimension {use.dimension} of {use.tensor}",
                expected=f"{extent}, as in dimension {first.dimension} of {first.tensor}",
                hint=f"to use only a part, give the extent: te.notation(…, {node.id}=n)",
            )  # fmt: skip
    return extent


def _same(a: Domain, b: Domain) -> bool:
    return a[0] == b[0] and same_extent(a[1], b[1])


def _shown(domain: tuple[Extent, Extent]) -> str:
    return f"({domain[0]}, {domain[1]})"


# -- building -------------------------------------------------------------------------------------


def _define(
    program: _Program, statement: Statement, domains: Mapping[str, Domain]
) -> tuple[Tensor, ...]:
    source = program.source
    axes = {node.id: Axis(node.id, domains[node.id][1], "data") for node in statement.left}
    reduced = {
        axis: Axis(axis, difference(end, first), "reduce", start=first)
        for axis, (first, end) in domains.items()
        if axis not in axes
    }
    variables: dict[str, Axis | Var] = {**program.symbols.by_name, **axes, **reduced}
    build = Builder(source, program.known, variables).build
    values = [build(value) for value in statement.values]
    name = _operation_name([target.id for target in statement.targets])
    with source.pointing_at(None):
        if statement.reducer:
            with source.pointing_at(statement.values[0]):
                values = _reductions(program, statement, values, list(reduced.values()), build)
        if len(values) != len(statement.targets):
            source.fail(
                statement.targets[0], "the number of results differs from the number of names",
                got=f"{len(values)} for {', '.join(t.id for t in statement.targets)}",
            )  # fmt: skip
        return define_tensors(name, tuple(axes.values()), values, WHERE)


def _reductions(
    program: _Program, statement: Statement, values: list[Any], axes: list[Axis], build: Any
) -> list[Any]:
    """Return all results of a reduction."""
    name = statement.reducer
    assert name is not None
    reduce = REDUCTIONS.get(name) or program.reducers[name]
    more: dict[str, Any] = {}
    if statement.where is not None:
        more["where"] = build(statement.where)
    if statement.init:
        starts = [build(start) for start in statement.init]
        more["init"] = starts[0] if len(starts) == 1 else tuple(starts)
    axis = axes[0] if name in ("argmax", "argmin") and len(axes) == 1 else axes
    result = reduce(values[0] if len(values) == 1 else tuple(values), axis=axis, **more)
    return list(result) if isinstance(result, tuple) else [result]


def _operation_name(names: list[str]) -> str:
    """Return the name of an operation from its tensors: C for C_v0 and C_v1, P_V for P and V."""
    if len(names) == 1:
        return names[0]
    stems = {name.removesuffix(f"_v{n}") for n, name in enumerate(names)}
    return stems.pop() if len(stems) == 1 else "_".join(names)
