"""Models in C: one source with its header, compiled by the C compiler of this machine if called."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dlcompiler.errors import UserError
from dlcompiler.graph.execution.c_entry import CKernelPart, c_model
from dlcompiler.graph.execution.entry import numbered_weights
from dlcompiler.graph.execution.kernels import ModelKernel
from dlcompiler.graph.execution.model import CompiledModel, code_of
from dlcompiler.graph.execution.steps import Steps
from dlcompiler.graph.ir import Module
from dlcompiler.output_files import write_file
from dlcompiler.pipeline.build import checked_name
from dlcompiler.runtime.c_source import CCode
from dlcompiler.runtime.function import Function
from dlcompiler.target import Target


class CModel(CompiledModel):
    """A model as one C source: kernels, weights, arena, and the function that calls them.

    Parameters
    ----------
    module, steps, kernels, target
        As of `CompiledModel`.
    name : str
        Name of its function.

    Notes
    -----
    A call needs a C compiler. Several threads may call it at the same time.
    """

    def __init__(
        self, module: Module, steps: Steps, kernels: Sequence[ModelKernel], target: Target,
        name: str,
    ) -> None:  # fmt: skip
        numbers, weights = numbered_weights(steps.weights, [code_of(k) for k in kernels])
        parts = [
            CKernelPart(kernel.built.program.kernels[0], inside)
            for kernel, inside in zip(kernels, numbers, strict=True)
        ]
        self._written = c_model(steps, parts, weights, checked_name(name))
        made = self._written
        code = CCode(
            {"c": made.source, "header": made.header}, made.symbol,
            returns_number=bool(made.messages), reports_values=made.reports_values,
        )  # fmt: skip
        function = Function(code, made.symbol, steps.params, name, messages=made.messages)
        super().__init__(module, steps, kernels, target, function)

    @property
    def header(self) -> str:
        """The header; the source begins with it."""
        return self._written.header

    def source(self) -> str:
        """Return the C source."""
        return self._written.source

    def save(self, path: str | Path) -> Path:
        """Write source and header into a folder, and return the path of the source.

        A folder that does not exist is made.

        Raises
        ------
        UserError
            They cannot be written.
        """
        folder = Path(path)
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise UserError(f"write {folder}", "no folder can be made here", got=error) from error
        source = folder / f"{self._written.symbol}.c"
        write_file(source, self.source())
        write_file(folder / f"{self._written.symbol}.h", self.header)
        return source
