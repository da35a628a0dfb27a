"""On which device each kernel of a function runs, and where its values are."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from dlcompiler.errors import GraphError
from dlcompiler.graph.ir import Call, Function, Node, Op, Var, post_order
from dlcompiler.graph.memory.values import Kernel, Program, Value, outer_children
from dlcompiler.graph.operators import REGISTRY

NAME = "device_copy"


@dataclass(frozen=True, slots=True)
class Devices:
    """Where the kernels of a function run, and where their values are."""

    default: str
    """Where parameters and results are; "" for a model on one device."""
    values: Mapping[Value, str]
    kernels: Mapping[int, str]
    """Number of a kernel -> its device; a copy between devices has none."""


def devices_of(program: Program, default: str, known: Set[str]) -> Devices:
    """Return where kernels run: where their values are, which copies between devices decide.

    Parameters
    ----------
    program : Program
        The kernels of a function, after `place_on_devices`.
    default : str
        Where parameters and results are.
    known : set of str
        Names of all devices.

    Raises
    ------
    GraphError
        If a copy names another device.
    """
    found = _Groups(default)
    for value in program.values:
        if value.used_at == len(program.kernels):
            found.pin(value, default)
    for kernel in program.kernels:
        inputs = [value for _, value in kernel.inputs]
        copy = copied_between(kernel.call)
        if copy is None:
            found.join(kernel.number, *inputs, *kernel.outputs)
            if _reads_parameters(kernel):
                found.pin(kernel.number, default)
            continue
        for values, device in zip((inputs, kernel.outputs), copy, strict=True):
            _check(device, known, kernel.name)
            for value in values:
                found.pin(value, device)
    return Devices(
        default,
        {value: found.device(value) for value in program.values},
        {k.number: found.device(k.number) for k in program.kernels if not copied_between(k.call)},
    )


def copied_between(call: Call) -> tuple[str, str] | None:
    """Return the devices of a copy between devices, from and to; None for any other kernel."""
    if isinstance(call.op, Function):
        inner = call.op.body
        return copied_between(inner) if isinstance(inner, Call) else None
    if not isinstance(call.op, Op) or call.op.name != NAME:
        return None
    attrs = REGISTRY[NAME].complete(call)
    return str(attrs["source"]), str(attrs["target"])


def _check(name: str, known: Set[str], kernel: str) -> None:
    if name not in known:
        raise GraphError(
            f"place {kernel}", "there is no target for a device", got=repr(name),
            expected=", ".join(sorted(known)), hint='build(module, {"cpu": "cpu", "gpu": "cuda"})',
        )  # fmt: skip


def _reads_parameters(kernel: Kernel) -> bool:
    def parts(node: Node) -> tuple[Node, ...]:
        return () if isinstance(node, Call) else outer_children(node)

    return any(isinstance(node, Var) for arg in kernel.call.args for node in post_order(arg, parts))


@dataclass(slots=True)
class _Groups:
    """Kernels and values in groups that are on one device each."""

    default: str
    above: dict[object, object] = field(default_factory=dict)
    pinned: dict[object, str] = field(default_factory=dict)

    def root(self, item: object) -> object:
        """Return the item that stands for a group."""
        while item in self.above:
            item = self.above[item]
        return item

    def join(self, first: object, *others: object) -> None:
        """Make one group of several."""
        for other in others:
            root, end = self.root(first), self.root(other)
            if root is end:
                continue
            self.above[end] = root
            if end in self.pinned:
                self.pin(root, self.pinned[end])

    def pin(self, item: object, device: str) -> None:
        """Say on which device a group is."""
        self.pinned.setdefault(self.root(item), device)

    def device(self, item: object) -> str:
        """Return the device of a group; the default where nothing decides."""
        return self.pinned.get(self.root(item), self.default)
