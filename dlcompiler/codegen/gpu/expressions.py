"""Expressions of a kernel: loads from the registers of other threads are shuffles."""

from __future__ import annotations

from collections.abc import Mapping

from dlcompiler.codegen.c.arithmetic import Arithmetic
from dlcompiler.codegen.c.expressions import Expressions
from dlcompiler.codegen.c.text import Text
from dlcompiler.codegen.c.writer import Writer
from dlcompiler.codegen.gpu.lanes import simple_position
from dlcompiler.codegen.gpu.shuffles import Exchange
from dlcompiler.ir import Buffer, Expr, Load, Var
from dlcompiler.passes.flatten_storage import flat_index


class KernelExpressions(Expressions):
    """Writes the expressions of one kernel.

    Parameters
    ----------
    writer, arithmetic
        As for `Expressions`.
    exchanges
        The buffers that stand for registers of other threads.
    """

    def __init__(
        self, writer: Writer, arithmetic: Arithmetic, exchanges: Mapping[Buffer, Exchange]
    ) -> None:
        super().__init__(writer, arithmetic)
        self._exchanges = exchanges
        self.in_memory: dict[Var, str] = {}
        """Variables whose value stands in a vector as memory has it: 16-bit floats."""

    def stored(self, value: Expr) -> Text:
        """Return a value as it is stored in memory."""
        if isinstance(value, Var) and value in self.in_memory:
            return Text(self.in_memory[value])
        return super().stored(value)

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Text:
        """Return the lvalue of an element in memory."""
        position = simple_position(flat_index(buffer, indices), self.analyzer)
        return Text(f"{self.buffers[buffer]}[{self.value(position).text}]")

    def _loaded(self, load: Load) -> Text:
        exchange = self._exchanges.get(load.buffer)
        if exchange is None:
            return super()._loaded(load)
        self.read.add(exchange.own)
        lane, *index = load.indices
        value = self.element(exchange.own, tuple(index)).text
        group = exchange.group
        form = self.analyzer.affine(lane).plus(self.analyzer.affine(group.lane), -1)
        name, place = "__shfl_sync", self.value(lane).text
        if form.is_constant and form.constant > 0:
            name, place = "__shfl_down_sync", str(form.constant)
        return Text(f"{name}({group.mask:#x}u, {value}, {place}, {group.width})")
