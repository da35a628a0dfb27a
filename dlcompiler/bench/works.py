"""Works: computations to measure, named by a text such as ``gemm:512x640x768,dtype=int8``.

`parse_work` reads such a text; `dlcompiler.bench.families` has the grammar, a family to an entry.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dlcompiler import dtypes, ops
from dlcompiler.bench.families import GRAMMAR, LENGTHS, REPEATED, Family, Row, Value, Values
from dlcompiler.errors import DLCompilerError, UserError
from dlcompiler.space import Workload
from dlcompiler.te import PlaceholderOp, Tensor

__all__ = ["GRAMMAR", "Row", "Work", "form", "parse_work", "parse_works"]

LARGEST_TENSOR = 1 << 29
"""Elements of the largest array of a work: 2 GiB of float32."""

ACTIVATIONS = ("relu", "relu6", "gelu", "silu", "sigmoid", "tanh")
EPILOGUES = ("bias", "batch_norm", "residual", *ACTIVATIONS)
"""Steps that may be fused after a product or a convolution, in their order."""

_NUMBER = r"-?\d{1,9}"
_MAY_BE_ZERO = ("padding", "before", "after", "begin")


@dataclass(frozen=True)
class Work:
    """A computation of given sizes.

    Examples
    --------
    >>> parse_work("dense:128x3072x768+bias+gelu")
    Work('dense:128x3072x768+bias+gelu')
    """

    text: str
    """As the user wrote it."""
    family: str
    """A key of `GRAMMAR`."""
    sizes: Values = field(hash=False)
    """Its sizes by name, as in `Family.parts`."""
    options: Values = field(default_factory=dict, hash=False)
    """All options of its family by name."""
    function: str = ""
    """Name of the function, in families that have several."""
    epilogue: tuple[str, ...] = ()
    """The fused steps that follow it."""

    def __getitem__(self, name: str) -> Any:
        return {**self.sizes, **self.options}[name]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows that are measured: with operands as the caller has them, or packed ahead."""
        family = GRAMMAR[self.family]
        if family.is_always_packed:
            return ("prepacked",)
        return ("plain", "prepacked") if family.has_weights else ("plain",)

    @property
    def judged(self) -> Row:
        """The row that goals are judged by."""
        return GRAMMAR[self.family].judged

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that `dlcompiler.ops.select` takes, with the epilogue."""
        family = GRAMMAR[self.family]
        given = family.parameters(self.function, {**self.sizes, **self.options})
        return {**given, "epilogue": "+".join(self.epilogue)} if family.fuses else given

    @cached_property
    def workload(self) -> Workload:
        """The workload, which is checked; for a convolution, of `conv2d_direct`."""
        family = GRAMMAR[self.family]
        return ops.operator(family.checked_by or family.operator).workload(**self.parameters)

    @cached_property
    def _defined(self) -> tuple[list[Tensor], list[Tensor]]:
        """Operands and results of the operator's definition."""
        every = ops.operator(self.workload.op).define(self.workload)
        is_operand = [isinstance(tensor.op, PlaceholderOp) for tensor in every]
        count = sum(is_operand)
        assert all(is_operand[:count])
        return list(every[:count]), list(every[count:])

    @property
    def results(self) -> int:
        """Number of results, which all have the shape of ``out``."""
        return len(self._defined[1])

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        """Parameters of the operator's definition by their roles; ``out``, a result, is last."""
        inputs, outs = self._defined
        roles = GRAMMAR[self.family].roles
        return {**{roles.get(t.name, t.name): t for t in inputs}, "out": outs[0]}

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of its arrays by their roles; ``out`` is the last one."""
        of = GRAMMAR[self.family].shapes
        if of is not None:
            return of(self.workload)
        return {role: tensor.static_shape for role, tensor in self.tensors.items()}

    @property
    def dtypes(self) -> dict[str, str]:
        """Dtypes of its arrays by their roles."""
        return {role: tensor.dtype for role, tensor in self.tensors.items()}

    @property
    def flops(self) -> int:
        """Multiplications and additions of a product or convolution; 0 for other works."""
        return 2 * math.prod(self.shapes["out"]) * GRAMMAR[self.family].terms(self.workload)

    @property
    def nbytes(self) -> int:
        """Least number of bytes that must be read and written [byte]."""
        sizes = {role: dtypes.to_numpy(dtype).itemsize for role, dtype in self.dtypes.items()}
        shapes = {role: math.prod(shape) for role, shape in self.shapes.items()}
        shapes["out"] *= self.results
        if GRAMMAR[self.family].reads_part:
            shapes["data"] = min(shapes["data"], shapes["out"])
        return sum(sizes[role] * elements for role, elements in shapes.items())

    def __repr__(self) -> str:
        return f"Work({self.text!r})"


def parse_work(text: str) -> Work:
    """Read a work.

    Parameters
    ----------
    text : str
        ``family:sizes`` or ``family:function:sizes``, then ``,name=value`` for each option, and
        ``+name`` for each fused step.

    Raises
    ------
    UserError
        With what was expected.

    Examples
    --------
    >>> parse_work("conv2d:1x64x56x56,64,3,1,1,groups=32+bias+relu").sizes["outputs"]
    64
    >>> parse_work("elementwise:add:16777216").shapes
    {'data': (16777216,), 'other': (16777216,), 'out': (16777216,)}
    >>> parse_work("reduction:sum:2x3x4,axes=0x2").shapes["out"]
    (3,)
    """
    head, *epilogue = text.split("+")
    family, *parts = head.split(":")
    if family not in GRAMMAR:
        close = difflib.get_close_matches(family, GRAMMAR, n=1)
        raise _refusal(
            text, "no family of works has this name", got=repr(family),
            expected=", ".join(GRAMMAR), hint=f"did you mean {close[0]!r}?" if close else None,
        )  # fmt: skip
    grammar = GRAMMAR[family]
    function = parts.pop(0) if grammar.functions and len(parts) > 1 else ""
    if (grammar.functions and function not in grammar.functions) or len(parts) != 1:
        raise _refusal(text, "not of the form of its family", expected=form(family))
    pieces = parts[0].split(",")
    first = next((n for n, piece in enumerate(pieces) if "=" in piece), len(pieces))
    sizes = _sizes(text, family, pieces[:first])
    options = _options(text, grammar, pieces[first:])
    work = Work(text, family, sizes, options, function, tuple(epilogue))
    _check_epilogue(work)
    _check_sizes(work)
    _check_shapes(work)
    return work


def form(family: str) -> str:
    """Return the notation for works of a family, with its options and their defaults.

    Examples
    --------
    >>> form("softmax"), form("pool2d")[:35]
    ('softmax:shape[,axis=-1,dtype=float32]', 'pool2d:{max,avg}:NxCxHxW,kernel,str')
    """
    grammar = GRAMMAR[family]
    choice = f"{{{','.join(grammar.functions)}}}:" if grammar.functions else ""
    options = ",".join(f"{name}={default}" for name, default in grammar.options.items())
    steps = "[+step…]" if grammar.fuses else ""
    return f"{family}:{choice}{grammar.form}[,{options}]{steps}"


def _sizes(text: str, family: str, pieces: Sequence[str]) -> dict[str, Value]:
    parts = GRAMMAR[family].parts
    pattern = rf"{_NUMBER}(x{_NUMBER})*"
    problem = _refusal(
        text, "not the sizes of its family", got=repr(",".join(pieces)), expected=form(family)
    )
    if not all(re.fullmatch(pattern, piece, re.ASCII) for piece in pieces):
        raise problem
    numbers = [_numbers(piece) for piece in pieces]
    if parts == (REPEATED,):
        return {REPEATED: tuple(numbers)}
    if len(numbers) != len(parts):
        raise problem
    sizes: dict[str, Value] = {}
    for names, given in zip(parts, numbers, strict=True):
        lengths = LENGTHS.get(names) if isinstance(names, str) else (len(names),)
        if lengths is not None and len(given) not in lengths:
            raise problem
        if isinstance(names, tuple):
            sizes |= dict(zip(names, given, strict=True))
        else:
            sizes[names] = given[0] if lengths and len(given) == 1 else given
    return sizes


def _numbers(piece: str) -> tuple[int, ...]:
    return tuple(map(int, piece.split("x")))


def _options(text: str, grammar: Family, pieces: Sequence[str]) -> dict[str, Value]:
    """Return the value of each option: a number, several joined by ``x``, or a word."""
    given: dict[str, Value] = {}
    for piece in pieces:
        name, _, value = piece.partition("=")
        if name not in grammar.options:
            close = difflib.get_close_matches(name, grammar.options, n=1)
            raise _refusal(
                text, "no option of its family has this name", got=repr(piece),
                expected=", ".join(f"{n}={default}" for n, default in grammar.options.items()),
                hint=f"did you mean {close[0]!r}?" if close else None,
            )  # fmt: skip
        if name in given:
            raise _refusal(text, "an option is given twice", got=repr(name))
        given[name] = _value(value)
    return {**grammar.options, **given}


def _value(text: str) -> Value:
    if re.fullmatch(rf"{_NUMBER}(x{_NUMBER})*", text, re.ASCII) is None:
        return text
    numbers = _numbers(text)
    return numbers[0] if len(numbers) == 1 else numbers


def _check_epilogue(work: Work) -> None:
    steps = work.epilogue
    if steps and not GRAMMAR[work.family].fuses:
        raise _refusal(work.text, f"nothing can be fused behind {work.family}")
    for step in steps:
        if step not in EPILOGUES:
            raise _refusal(
                work.text, "no step has this name", got=repr(step), expected=", ".join(EPILOGUES)
            )
    order = [min(EPILOGUES.index(step), EPILOGUES.index("relu")) for step in steps]
    if order != sorted(set(order)):
        raise _refusal(
            work.text, "steps that are repeated or out of order", got="+".join(steps),
            expected="bias, batch_norm, residual, then one activation; each may be left out",
        )  # fmt: skip
    if "batch_norm" in steps and work.family not in ("conv2d", "depthwise"):
        raise _refusal(work.text, "batch_norm is a step behind convolutions only")


def _check_sizes(work: Work) -> None:
    """Refuse sizes of 0, and what the operator refuses."""
    sizes = {name: size for name, size in work.sizes.items() if name not in _MAY_BE_ZERO}
    if zero := [name for name, size in sizes.items() if _has_zero(size)]:
        raise _refusal(work.text, "a size is 0: there is nothing to measure", got=", ".join(zero))
    try:
        _ = work.workload
    except DLCompilerError as error:
        raise _refusal(
            work.text, error.problem, got=error.got, expected=error.expected, hint=error.hint
        ) from error


def _has_zero(size: Any) -> bool:
    return size == 0 or (isinstance(size, tuple) and any(map(_has_zero, size)))


def _check_shapes(work: Work) -> None:
    shapes = work.shapes
    if min(shapes["out"], default=1) < 1:
        raise _refusal(work.text, "the kernel is larger than the padded image")
    role, shape = max(shapes.items(), key=lambda item: math.prod(item[1]))
    if math.prod(shape) > LARGEST_TENSOR:
        raise _refusal(
            work.text, "an array is too large", got=f"{role}, {math.prod(shape):,} elements",
            expected=f"at most {LARGEST_TENSOR:,}",
        )  # fmt: skip


def _refusal(text: str, problem: str, **parts: Any) -> UserError:
    return UserError(f"work {text!r}", problem, **parts)


def parse_works(texts: Sequence[str]) -> tuple[Work, ...]:
    """Read several works."""
    return tuple(parse_work(text) for text in texts)
