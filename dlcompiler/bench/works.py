"""Works: computations to measure, named by a text such as ``gemm:512x640x768``.

`parse_work` reads such a text; `GRAMMAR` is its grammar, a family to a line.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dlcompiler.errors import UserError

Row: TypeAlias = Literal["plain", "prepacked"]

LARGEST_TENSOR = 1 << 29
"""Elements of the largest array of a work: 2 GiB of float32."""

ACTIVATIONS = ("relu", "relu6", "gelu", "silu", "sigmoid", "tanh")
EPILOGUES = ("bias", "batch_norm", "residual", *ACTIVATIONS)
"""Steps that may be fused after a product or a convolution, in their order."""

ELEMENTWISE = {
    **dict.fromkeys(("copy", "scale", "relu", "exp", "tanh", "sigmoid"), 1),
    **dict.fromkeys(("add", "multiply"), 2),
}
"""Elementwise functions, and how many arrays each reads."""
REDUCTIONS = ("sum", "max", "min", "mean")
POOLINGS = ("max", "avg")
"""Functions of pooling; an average also counts the zeros of the padding."""


@dataclass(frozen=True, slots=True)
class Family:
    """Works that differ in their sizes only."""

    form: str
    """The sizes as a user writes them."""
    names: tuple[str, ...]
    """Names of the numbers of `form`, in its order."""
    functions: tuple[str, ...] = ()
    """Names of functions that may precede the sizes."""
    has_weights: bool = False
    """Whether an operand is known before the call, and may be packed ahead."""
    judged: Row = "plain"
    """The row that goals are judged by."""
    bound_by: Literal["compute", "memory"] = "compute"
    """What limits a good implementation."""


_MATRIX, _IMAGE = ("m", "n", "k"), ("batch", "channels", "height", "width")
_WINDOW = ("kernel", "stride", "padding")

GRAMMAR: dict[str, Family] = {
    "gemm": Family("MxNxK", _MATRIX, has_weights=True),
    "dense": Family("MxNxK", _MATRIX, has_weights=True),
    "batch_matmul": Family("BxMxNxK", ("batch", *_MATRIX)),
    "conv2d": Family(
        "NxCxHxW,output channels,kernel,stride,padding",
        (*_IMAGE, "outputs", *_WINDOW),
        has_weights=True,
        judged="prepacked",
    ),
    "depthwise": Family(
        "NxCxHxW,kernel,stride,padding", (*_IMAGE, *_WINDOW), has_weights=True, judged="prepacked"
    ),
    "pool2d": Family(
        "NxCxHxW,kernel,stride,padding", (*_IMAGE, *_WINDOW), POOLINGS, bound_by="memory"
    ),
    "softmax": Family("RxC", ("rows", "columns"), bound_by="memory"),
    "log_softmax": Family("RxC", ("rows", "columns"), bound_by="memory"),
    "layer_norm": Family("RxC", ("rows", "columns"), bound_by="memory"),
    "elementwise": Family("N", ("length",), tuple(ELEMENTWISE), bound_by="memory"),
    "reduction": Family("RxC", ("rows", "columns"), REDUCTIONS, bound_by="memory"),
}
"""Family -> its grammar. ``gemm`` is A(M, K)·B(K, N), ``dense`` has its weights as (N, K);
``reduction`` reduces the columns of each row."""


@dataclass(frozen=True)
class Work:
    """A computation of given sizes, float32.

    Examples
    --------
    >>> parse_work("dense:128x3072x768+bias+gelu")
    Work('dense:128x3072x768+bias+gelu')
    """

    text: str
    """As the user wrote it."""
    family: str
    """A key of `GRAMMAR`."""
    numbers: tuple[int, ...]
    """Its sizes, named by `Family.names`."""
    function: str = ""
    """Name of the function, in families that have several."""
    epilogue: tuple[str, ...] = ()
    """The fused steps that follow it."""

    def __getitem__(self, name: str) -> int:
        return self.numbers[GRAMMAR[self.family].names.index(name)]

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes by name."""
        return dict(zip(GRAMMAR[self.family].names, self.numbers, strict=True))

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows that are measured: with operands as the caller has them, or packed ahead."""
        return ("plain", "prepacked") if GRAMMAR[self.family].has_weights else ("plain",)

    @property
    def judged(self) -> Row:
        """The row that goals are judged by."""
        return GRAMMAR[self.family].judged

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of its arrays by their roles; ``out`` is the last one."""
        return shapes_of(self)

    @property
    def flops(self) -> int:
        """Multiplications and additions of a product or convolution; 0 for other works."""
        return _flops(self)

    @property
    def nbytes(self) -> int:
        """Least number of bytes that must be read and written [byte]."""
        return 4 * sum(math.prod(shape) for shape in self.shapes.values())

    def __repr__(self) -> str:
        return f"Work({self.text!r})"


def parse_work(text: str) -> Work:
    """Read a work.

    Parameters
    ----------
    text : str
        ``family:sizes``, ``family:function:sizes``, and ``+name`` for each fused step.

    Raises
    ------
    UserError
        With what was expected.

    Examples
    --------
    >>> parse_work("conv2d:1x64x56x56,64,3,1,1+bias+relu").sizes["outputs"]
    64
    >>> parse_work("elementwise:add:16777216").shapes
    {'data': (16777216,), 'other': (16777216,), 'out': (16777216,)}
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
    work = Work(text, family, _sizes(text, family, parts[0]), function, tuple(epilogue))
    _check_epilogue(work)
    _check_shapes(work)
    return work


def form(family: str) -> str:
    """Return the notation for works of a family.

    Examples
    --------
    >>> form("softmax"), form("reduction")
    ('softmax:RxC', 'reduction:{sum,max,min,mean}:RxC')
    """
    grammar = GRAMMAR[family]
    choice = f"{{{','.join(grammar.functions)}}}:" if grammar.functions else ""
    steps = "[+step…]" if grammar.has_weights else ""
    return f"{family}:{choice}{grammar.form}{steps}"


def _sizes(text: str, family: str, sizes: str) -> tuple[int, ...]:
    grammar = GRAMMAR[family]
    # The form is its own pattern: a letter or a name stands for a number.
    pattern = re.sub(r"[A-Z]|[a-z][a-z ]+[a-z]", r"(\\d{1,9})", grammar.form)
    found = re.fullmatch(pattern, sizes, re.ASCII)
    if found is None:
        raise _refusal(text, "not the sizes of its family", got=repr(sizes), expected=form(family))
    return tuple(int(number) for number in found.groups())


def _check_epilogue(work: Work) -> None:
    steps = work.epilogue
    if steps and not GRAMMAR[work.family].has_weights:
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


def _check_shapes(work: Work) -> None:
    sizes = {name: size for name, size in work.sizes.items() if name != "padding"}
    if zero := [name for name, size in sizes.items() if size == 0]:
        raise _refusal(work.text, "a size is 0: there is nothing to measure", got=", ".join(zero))
    shapes = work.shapes
    if min(shapes["out"]) < 1:
        raise _refusal(work.text, "the kernel is larger than the padded image")
    role, shape = max(shapes.items(), key=lambda item: math.prod(item[1]))
    if math.prod(shape) > LARGEST_TENSOR:
        raise _refusal(
            work.text, "an array is too large", got=f"{role}, {math.prod(shape):,} elements",
            expected=f"at most {LARGEST_TENSOR:,}",
        )  # fmt: skip


def shapes_of(work: Work) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a work's arrays by role: inputs, then ``out``."""
    inputs, out = _main_shapes(work)
    channels = out[1] if len(out) == 4 else out[-1]
    for step in work.epilogue:
        match step:
            case "bias":
                inputs["bias"] = (channels,)
            case "batch_norm":
                inputs |= {"scale": (channels,), "shift": (channels,)}
            case "residual":
                inputs["residual"] = out
    return {**inputs, "out": out}


def _main_shapes(work: Work) -> tuple[dict[str, tuple[int, ...]], tuple[int, ...]]:
    numbers = work.numbers
    match work.family:
        case "gemm":
            m, n, k = numbers
            return {"data": (m, k), "weight": (k, n)}, (m, n)
        case "dense":
            m, n, k = numbers
            return {"data": (m, k), "weight": (n, k)}, (m, n)
        case "batch_matmul":
            batch, m, n, k = numbers
            return {"data": (batch, m, k), "other": (batch, k, n)}, (batch, m, n)
        case "conv2d" | "depthwise":
            return _convolution_shapes(work)
        case "pool2d":
            shapes, out = _convolution_shapes(work)
            return {"data": shapes["data"]}, out
        case "elementwise":
            roles = ("data", "other")[: ELEMENTWISE[work.function]]
            return dict.fromkeys(roles, numbers), numbers
        case "reduction":
            return {"data": numbers}, numbers[:1]
        case "layer_norm":
            return {"data": numbers, "scale": numbers[1:], "shift": numbers[1:]}, numbers
    return {"data": numbers}, numbers


def _convolution_shapes(work: Work) -> tuple[dict[str, tuple[int, ...]], tuple[int, ...]]:
    batch, channels, height, width = work.numbers[:4]
    kernel, stride, padding = work.numbers[-3:]
    is_depthwise = work.family != "conv2d"
    outputs = channels if is_depthwise else work["outputs"]
    spatial = [(extent + 2 * padding - kernel) // max(stride, 1) + 1 for extent in (height, width)]
    weight = (outputs, 1 if is_depthwise else channels, kernel, kernel)
    data = (batch, channels, height, width)
    return {"data": data, "weight": weight}, (batch, outputs, *spatial)


def _flops(work: Work) -> int:
    shapes = work.shapes
    match work.family:
        case "gemm" | "dense" | "batch_matmul":
            return 2 * math.prod(work.numbers)
        case "conv2d" | "depthwise":
            return 2 * math.prod(shapes["out"]) * math.prod(shapes["weight"][1:])
    return 0


def _refusal(text: str, problem: str, **parts: str | None) -> UserError:
    return UserError(f"work {text!r}", problem, **parts)


def parse_works(texts: Sequence[str]) -> tuple[Work, ...]:
    """Read several works."""
    return tuple(parse_work(text) for text in texts)
