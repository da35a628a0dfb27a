"""The entry of a model: LLVM code that calls its kernels one after another.

::

    define void @model(ptr %x, ptr %out0, ptr %status) {
      %arena = call ptr @dlc_workspace_alloc(i64 4096)     ; missing memory is message 1
      %0 = getelementptr i8, ptr %arena, i64 64
      %1 = load ptr, ptr @kernels                           ; address of kernel 0
      call void %1(ptr %x, ptr %0)
      …

The addresses of kernels and weights are in two tables, which are written once after the code was
loaded. So equal models have equal code, and several threads may call one model: each call has an
arena of its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dlcompiler.errors import OutOfMemory
from dlcompiler.graph.execution.stepping import KernelCode
from dlcompiler.graph.execution.steps import Place, Step, Steps
from dlcompiler.graph.operators.base import Array
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.llvm import LoadedModule, Options, compile_ir
from dlcompiler.runtime.native import HOLDING

SYMBOL = "model"
_SETTERS = {"kernels": "set_kernel", "weights": "set_weight"}


@dataclass(frozen=True, slots=True)
class Entry:
    """What a model's entry consists of."""

    text: str
    """LLVM IR."""
    messages: tuple[str, ...]
    """Messages of all kernels, in the order of their numbers in the status."""


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What an entry needs to know of a kernel."""

    messages: tuple[str, ...]
    """Its messages; without any it takes no status."""
    uses_threads: bool
    weights: tuple[int, ...] = ()
    """Numbers of the weights that it takes between inputs and outputs; [1]."""


def entry_of(steps: Steps, kernels: Sequence[KernelFacts], weights: int) -> Entry:
    """Write the entry of a model.

    Parameters
    ----------
    steps : Steps
        The model.
    kernels : sequence of KernelFacts
        Of the kernels of `steps`.
    weights : int
        Number of arrays that the model keeps; [1].
    """
    return _Writer(steps, kernels, weights).written()


class _Writer:
    def __init__(self, steps: Steps, kernels: Sequence[KernelFacts], weights: int) -> None:
        self.steps = steps
        self.weights = weights
        self.kernels = kernels
        self.uses_threads = any(kernel.uses_threads for kernel in kernels)
        shared = [step for step in steps.steps if kernels[step.kernel].uses_threads]
        self.holds = len(shared) > 1
        """Whether helper threads stay awake between its parallel kernels."""
        self.lines: list[str] = []
        self.count = 0
        no_memory = f"{OutOfMemory.PROBLEM}: the arena of the model ({steps.plan.bytes} bytes)"
        self.messages = [no_memory]
        self.first: dict[int, int] = {}
        """Kernel -> the number of messages before its own."""
        for number, kernel in enumerate(kernels):
            self.first[number] = len(self.messages)
            self.messages += kernel.messages

    def written(self) -> Entry:
        arrays = [f"ptr %a{n}" for n in range(len(self.steps.params))]
        self._begin()
        if self.holds:
            self.lines.append(f"call void @{HOLDING[0]}()")
        for step in self.steps.steps:
            self._step(step)
        self.lines += ["br label %done", "done:"]
        if self.holds:
            self.lines.append(f"call void @{HOLDING[1]}()")
        if self.steps.plan.bytes:
            self.lines.append("call void @dlc_workspace_free(ptr %arena)")
        self.lines.append("ret void")
        body = "\n".join(
            line if line.endswith(":") else f"  {line}" for line in ["entry:", *self.lines]
        )
        head = f"define void @{SYMBOL}({', '.join([*arrays, 'ptr %status'])}) nounwind {{"
        return Entry(f"{self._declarations()}\n{head}\n{body}\n}}\n", tuple(self.messages))

    def _declarations(self) -> str:
        lines = [
            f"@kernels = internal global [{max(len(self.kernels), 1)} x ptr] zeroinitializer",
            f"@weights = internal global [{max(self.weights, 1)} x ptr] zeroinitializer",
            "declare noalias ptr @dlc_workspace_alloc(i64) nounwind",
            "declare void @dlc_workspace_free(ptr) nounwind",
        ]
        if self.uses_threads:  # so that helpers are started
            lines.append("declare void @dlc_parallel_for(ptr, ptr, i64, i64) nounwind")
        if self.holds:
            lines += [f"declare void @{name}() nounwind" for name in HOLDING]
        for table, setter in _SETTERS.items():
            lines += [
                f"define void @{setter}(i64 %n, ptr %value) {{",
                f"  %at = getelementptr ptr, ptr @{table}, i64 %n",
                "  store ptr %value, ptr %at",
                "  ret void",
                "}",
            ]
        return "\n".join(lines)

    def _begin(self) -> None:
        size = self.steps.plan.bytes
        if not size:
            return
        self.lines += [
            f"%arena = call ptr @dlc_workspace_alloc(i64 {size})",
            "%missing = icmp eq ptr %arena, null",
            "br i1 %missing, label %no_memory, label %begin",
            "no_memory:",
            "store i64 1, ptr %status",
            "ret void",
            "begin:",
        ]

    def _new(self, value: str) -> str:
        name = f"%v{self.count}"
        self.count += 1
        self.lines.append(f"{name} = {value}")
        return name

    def _entry_of(self, table: str, number: int) -> str:
        at = self._new(f"getelementptr ptr, ptr @{table}, i64 {number}")
        return self._new(f"load ptr, ptr {at}")

    def _operand(self, place: Place) -> str:
        match place.kind:
            case "input":
                return f"%a{place.number}"
            case "output":
                return f"%a{len(self.steps.inputs) + place.number}"
            case "weight":
                return self._entry_of("weights", place.number)
        if not self.steps.plan.bytes:  # no kernel accesses a value without elements
            return "null"
        return self._new(f"getelementptr i8, ptr %arena, i64 {place.number}")

    def _step(self, step: Step) -> None:
        kernel = self.kernels[step.kernel]
        places = list(step.places)
        inside = [Place("weight", number, 0) for number in kernel.weights]
        places[len(places) - step.outputs : len(places) - step.outputs] = inside
        operands = [f"ptr {self._operand(place)}" for place in places]
        if kernel.messages:
            operands.append("ptr %status")
        code = self._entry_of("kernels", step.kernel)
        self.lines.append(f"call void {code}({', '.join(operands)})")
        if kernel.messages:
            self._check(self.first[step.kernel])

    def _check(self, before: int) -> None:
        """Leave if the kernel has failed; its messages are numbered after those before it."""
        number = self._new("load i64, ptr %status")
        is_right = self._new(f"icmp eq i64 {number}, 0")
        label = f"step{self.count}"
        self.lines += [f"br i1 {is_right}, label %{label}, label %{label}.failed"]
        self.lines.append(f"{label}.failed:")
        own = self._new(f"add i64 {number}, {before}")
        self.lines += [f"store i64 {own}, ptr %status", "br label %done", f"{label}:"]


def load_entry(steps: Steps, codes: Sequence[KernelCode], options: Options) -> Function:
    """Compile and load the entry of a model.

    Parameters
    ----------
    steps : Steps
        The model.
    codes : sequence of KernelCode
        Its kernels. They and the weights live as long as the result.
    options : Options
        How LLVM compiles it, except for the level.

    Notes
    -----
    The entry only loads addresses and calls kernels, so that LLVM's passes do not make it faster:
    without them, it is compiled in a quarter of the time.
    """
    numbers, weights = numbered_weights(steps.weights, codes)
    functions = [code.function for code in codes]
    facts = [
        KernelFacts(function.messages, function.uses_threads, inside)
        for function, inside in zip(functions, numbers, strict=True)
    ]
    entry = entry_of(steps, facts, len(weights))
    module = compile_ir(entry.text, replace(options, opt_level=0))
    _write(module, "kernels", [each.module.address(each.symbol) for each in functions])
    _write(module, "weights", [array.ctypes.data for array in weights])
    return Function(
        module, SYMBOL, steps.params, "the model", messages=entry.messages, holds=(codes, weights)
    )


def numbered_weights(
    weights: Sequence[Array], codes: Sequence[KernelCode]
) -> tuple[list[tuple[int, ...]], list[Array]]:
    """Return the numbers of the arrays inside each kernel, and all arrays of a model.

    Parameters
    ----------
    weights : sequence of ndarray
        Those that its steps name: they are the first.
    codes : sequence of KernelCode
        Its kernels.
    """
    numbers, every = [], list(weights)
    for code in codes:
        numbers.append(tuple(range(len(every), len(every) + len(code.weights))))
        every += code.weights
    return numbers, every


def _write(module: LoadedModule, table: str, addresses: Sequence[int]) -> None:
    put = module.entry(_SETTERS[table], [ctypes.c_int64, ctypes.c_void_p])
    for number, address in enumerate(addresses):
        put(number, address)
