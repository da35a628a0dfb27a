"""A model as one C source: its kernels, its weights, and the function that calls them.

::

    static const float weight_0[432] = {0.1f, …};
    static int fused_conv2d_relu(const float *restrict p0, …) { … }

    int model(const float *x, float *out0)
    {
        int code = 0;
        unsigned char *arena = malloc(4096);
        if (arena == NULL) {
            return MODEL_NO_MEMORY;
        }
        fused_conv2d_relu(x, weight_0, (float *)(arena + 64));      /* conv1 */
        …
        free(arena);
        return code;
    }
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dlcompiler import dtypes
from dlcompiler.codegen.c.dialect import C99
from dlcompiler.codegen.c.generator import Written, preamble, written
from dlcompiler.codegen.c.helpers import Helpers
from dlcompiler.codegen.c.interface import PLACES, guarded
from dlcompiler.codegen.c.literals import literal
from dlcompiler.codegen.c.names import Names, comment
from dlcompiler.errors import MAX_VALUES, OutOfMemory, filled
from dlcompiler.graph.execution.steps import Place, Step, Steps
from dlcompiler.graph.operators.base import Array
from dlcompiler.ir import PrimFunc
from dlcompiler.runtime.arguments import Param

MOST_READABLE = 4096
"""Most elements of a weight that is written as numbers. C compilers read a string 18 times faster
than the same array as numbers (gcc 12, 4 million floats: 0.8 and 14 s); [1]."""
ROW_BYTES = 1024
"""Bytes of a string; C99 promises 4095; [byte]."""
BYTE_ORDER = (
    "#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__",
    '#error "large weights are written as bytes, lowest first"',
    "#endif",
)
_OCTAL = [f"\\{byte:03o}" for byte in range(256)]
_COLUMNS = 96


@dataclass(frozen=True, slots=True)
class CKernelPart:
    """A kernel of a model in C."""

    func: PrimFunc
    weights: tuple[int, ...]
    """Numbers of the weights that it takes between inputs and outputs; [1]."""


@dataclass(frozen=True, slots=True)
class CModelText:
    """A model in C."""

    source: str
    """The whole source; it begins with the header."""
    header: str
    symbol: str
    """Name of its function."""
    messages: tuple[str, ...]
    """Messages of the numbers that it returns, from 1."""
    reports_values: bool
    """Whether it takes one more pointer, to the numbers in a message."""


def c_model(
    steps: Steps, kernels: Sequence[CKernelPart], weights: Sequence[Array], name: str
) -> CModelText:
    """Write a model as C99.

    Parameters
    ----------
    steps : Steps
        The model.
    kernels : sequence of CKernelPart
        The kernels of its steps.
    weights : sequence of ndarray
        All arrays that it keeps: those of the steps, then those inside kernels.
    name : str
        Name of its function.

    Raises
    ------
    TargetError
        If a kernel cannot be written in C.
    """
    return _Writer(steps, kernels, weights, name).written()


class _Writer:
    def __init__(
        self, steps: Steps, kernels: Sequence[CKernelPart], weights: Sequence[Array], name: str
    ) -> None:
        self.steps = steps
        self.kernels = kernels
        self.weights = weights
        names = Names()
        self.symbol = names.new(name)
        self.prefix = self.symbol.upper().rstrip("_")
        self.arrays = [names.new(f"weight_{n}") for n in range(len(weights))]
        self.helpers = Helpers(C99)
        self.functions: list[Written] = []
        for kernel in kernels:
            symbol = names.new(kernel.func.name)
            with names.block():
                self.functions.append(written(kernel.func, symbol, names, self.helpers))
        no_memory = f"{OutOfMemory.PROBLEM}: the arena of the model ({steps.plan.bytes} bytes)"
        self.messages = [no_memory] if steps.plan.bytes else []
        self.first: list[int] = []
        """For each kernel, the number of messages before its own."""
        for each in self.functions:
            self.first.append(len(self.messages))
            self.messages += each.called.messages
        for macro in ("H", *map(self._macro, range(1, len(self.messages) + 1))):
            names.new(f"{self.prefix}_{macro}")  # a parameter must have another name
        self.params = [names.new(param.name) for param in steps.params]
        self.report = ""
        if any(each.called.reports_values for each in self.functions):
            self.report = names.new("report")
        self.arena, self.code, self.end = names.new("arena"), names.new("code"), names.new("end")

    def written(self) -> CModelText:
        header = self._header()
        source = [
            *header, "", *preamble([kernel.func for kernel in self.kernels], self.helpers),
            *self._weights(), *self._kernels(), *self._entry(),
        ]  # fmt: skip
        return CModelText(
            "\n".join(source) + "\n", "\n".join(header) + "\n", self.symbol, tuple(self.messages),
            bool(self.report),
        )  # fmt: skip

    # -- the header -------------------------------------------------------------------------------

    def _header(self) -> list[str]:
        return guarded(self.symbol, self._about(), self._macros(), self._declaration())

    def _about(self) -> list[str]:
        about = {name: _description(param)
                 for name, param in zip(self.params, self.steps.params, strict=True)}  # fmt: skip
        if self.report:
            about[self.report] = f"int64[{MAX_VALUES}], gets {{0}}, {{1}}, ... of a code; or NULL"
        width = max(map(len, about), default=0)
        text = [
            f"{comment(self.symbol)}, a model of {len(self.steps.steps)} kernels, generated by "
            "dlcompiler",
            "",
            *(f"  {name:<{width}}  {what}" for name, what in about.items()),
            "",
            "Arrays are row-major, without gaps. None shares memory with one that is written.",
            f"A call allocates an arena of {self.steps.plan.bytes} bytes, and frees it at its end; "
            "several",
            "threads may call at the same time.",
            f"Returns {'0, or one of the codes below' if self.messages else '0'}.",
        ]
        return ["/*", *(f" * {line}".rstrip() for line in text), " */"]

    def _macros(self) -> list[str]:
        lines = []
        for number, message in enumerate(self.messages, 1):
            macro = f"{self.prefix}_{self._macro(number)}"
            lines.append(f"#define {macro} {number}  /* {comment(filled(message, PLACES))} */")
        return lines

    def _macro(self, number: int) -> str:
        """Return the end of the name of a message."""
        return "NO_MEMORY" if number == 1 and self.steps.plan.bytes else f"ERROR_{number}"

    def _declaration(self) -> list[str]:
        parameters = [
            f"{'' if param.is_output else 'const '}{C99.element(param.dtype)} *{name}"
            for name, param in zip(self.params, self.steps.params, strict=True)
        ]
        if self.report:
            parameters.append(f"int64_t *{self.report}")
        return _wrapped(f"int {self.symbol}(", parameters or ["void"], ")", "    ")

    # -- weights and kernels ----------------------------------------------------------------------

    def _weights(self) -> Iterator[str]:
        if any(is_as_bytes(array) for array in self.weights):
            yield from (*BYTE_ORDER, "")
        for name, array in zip(self.arrays, self.weights, strict=True):
            type_ = C99.element(dtypes.from_numpy(array.dtype))
            shape = " x ".join(map(str, array.shape)) or "a number"
            yield f"/* {array.dtype}, {shape} */"
            if is_as_bytes(array):
                rows = byte_rows(array)
                yield f"static const union {{ unsigned char bytes[{len(rows)}][{ROW_BYTES}];"
                yield f"    {type_} values[{array.size}]; }} {name} = {{{{"
                yield from (f"{row}," for row in rows)
                yield "}};"
            else:
                head = f"static const {type_} {name}[{max(array.size, 1)}] = {{"
                yield from _wrapped(head, elements(array), "};", "    ")
            yield ""

    def _kernels(self) -> Iterator[str]:
        for each in self.functions:
            yield from each.codes.definitions()
            first, *rest = (text for text, _ in each.lines)
            yield f"static {first}"
            yield from rest
            yield ""

    # -- the entry --------------------------------------------------------------------------------

    def _entry(self) -> Iterator[str]:
        size = self.steps.plan.bytes
        yield from self._declaration()
        yield "{"
        if self.messages:
            yield f"    int {self.code} = 0;"
        if size:
            yield f"    unsigned char *{self.arena} = malloc({size});"
            yield f"    if ({self.arena} == NULL) {{"
            yield f"        return {self.prefix}_NO_MEMORY;"
            yield "    }"
        used = {(place.kind, place.number) for step in self.steps.steps for place in step.places}
        for n, name in enumerate(self.params):
            if not self._is_used(n, used):
                yield f"    (void){name};"
        for step in self.steps.steps:
            yield from self._step(step)
        if any(each.called.messages for each in self.functions):
            yield f"{self.end}:"
        if size:
            yield f"    free({self.arena});"
        yield f"    return {self.code if self.messages else 0};"
        yield "}"

    def _is_used(self, param: int, used: Collection[tuple[object, int]]) -> bool:
        inputs = len(self.steps.inputs)
        key = ("input", param) if param < inputs else ("output", param - inputs)
        return key in used

    def _step(self, step: Step) -> Iterator[str]:
        kernel, function = self.kernels[step.kernel], self.functions[step.kernel]
        inputs = len(step.places) - step.outputs
        params = list(function.interface.func.buffers)
        inside = [Place("weight", number, 0) for number in kernel.weights]
        places = [*step.places[:inputs], *inside, *step.places[inputs:]]
        operands = [
            self._operand(place, C99.element(param.dtype), is_read=param not in kernel.func.outputs)
            for place, param in zip(places, params, strict=True)
        ]
        if function.called.reports_values:
            operands.append(self.report)
        call = f"{function.interface.symbol}("
        about = f"    /* {comment(step.name)} */"
        if not function.called.messages:
            yield about
            yield from _indented(_wrapped(call, operands, ");", "    "))
            return
        yield about
        yield from _indented(_wrapped(f"{self.code} = {call}", operands, ");", "    "))
        yield f"    if ({self.code} != 0) {{"
        yield f"        {self.code} += {self.first[step.kernel]};"
        yield f"        goto {self.end};"
        yield "    }"

    def _operand(self, place: Place, type_: str, *, is_read: bool) -> str:
        const = "const " if is_read else ""
        match place.kind:
            case "input":
                return f"({const}{type_} *){self.params[place.number]}"
            case "output":
                return f"({const}{type_} *){self.params[len(self.steps.inputs) + place.number]}"
            case "weight":
                values = ".values" if is_as_bytes(self.weights[place.number]) else ""
                return f"({const}{type_} *){self.arrays[place.number]}{values}"
        if not self.steps.plan.bytes:  # no kernel accesses a value without elements
            return "NULL"
        return f"({const}{type_} *)({self.arena} + {place.number})"


def is_as_bytes(array: Array) -> bool:
    """Tell whether a weight is written as bytes."""
    return array.size > MOST_READABLE


def byte_rows(array: Array) -> list[str]:
    r"""Return the bytes of an array as strings in C.

    Examples
    --------
    >>> print(*byte_rows(np.array([1, 65], "int16")))
    "\001\000\101\000"
    """
    data = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return [
        f'"{"".join(map(_OCTAL.__getitem__, data[at : at + ROW_BYTES]))}"'
        for at in range(0, len(data), ROW_BYTES)
    ]


def elements(array: Array) -> list[str]:
    """Return the elements of an array as C constants, in row-major order.

    Examples
    --------
    >>> elements(np.array([0.1, -2, np.inf], "float32")), elements(np.array([], "int8"))
    (['0.1f', '-2.0f', 'INFINITY'], ['0'])
    """
    flat = array.reshape(-1)
    dtype = dtypes.from_numpy(array.dtype)
    if not flat.size:
        return ["0"]
    if dtypes.is_float(dtype) and dtypes.bits(dtype) == 16:
        return list(map(str, flat.view(np.uint16).tolist()))
    if dtype == "float32" and bool(np.isfinite(flat).all()):
        return [f"{text}f" for text in flat.astype("U32").tolist()]
    if dtypes.is_float(dtype) or dtypes.bits(dtype) > 32:
        return [literal(value, dtype).text for value in flat.tolist()]
    return [str(int(value)) for value in flat.tolist()]


def _description(param: Param) -> str:
    shape = ", ".join(map(str, param.shape))
    is_16 = dtypes.is_float(param.dtype) and dtypes.bits(param.dtype) == 16
    bits = ", as its bits" if is_16 else ""
    return f"{param.dtype}[{shape}]{bits}, {'written' if param.is_output else 'read'}"


def _wrapped(head: str, items: Sequence[str], end: str, indent: str) -> list[str]:
    """Return a list in C: in one line if it fits, else in lines of full width."""
    line = f"{head}{', '.join(items)}{end}" if len(items) < _COLUMNS else ""
    if line and len(line) < _COLUMNS:
        return [line]
    lines, width = [head], len(indent)
    row: list[str] = []
    for item in items:
        if row and width + len(item) + 2 > _COLUMNS:
            lines.append(f"{indent}{', '.join(row)},")
            row, width = [], len(indent)
        row.append(item)
        width += len(item) + 2
    return [*lines, f"{indent}{', '.join(row)}", end] if end == "};" else [
        *lines, f"{indent}{', '.join(row)}{end}"
    ]  # fmt: skip


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
