"""Run calls on the devices that annotations name; copy values from one to another."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dlcompiler.graph.decisions import Decision, Effect
from dlcompiler.graph.inference import Types, infer_types, types_of
from dlcompiler.graph.ir import (
    Call,
    Constant,
    Expr,
    Function,
    Module,
    Node,
    Op,
    Tuple,
    TupleGetItem,
    TupleType,
    children,
    named,
    nbytes,
    post_order,
    rewrite,
    tensor_types,
    with_children,
)
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.graph.operators.functions import call as make_call
from dlcompiler.graph.passes.tools import attrs_of, operator_of

NAME = "place_on_devices"


def place_on_devices(module: Module, default: str = "cpu") -> Module:
    """Replace annotations by copies between devices.

    *Before*::

        %0 = exp(%x);
        %1 = on_device(%0, device="gpu");
        sqrt(%1)

    *After*::

        %0 = device_copy(%x, source="cpu", target="gpu");
        %1 = exp(%0);
        %2 = sqrt(%1);
        device_copy(%2, source="gpu", target="cpu")

    Parameters
    ----------
    module : Module
        The module.
    default : str
        Where parameters and results are, and calls that nothing places.

    Returns
    -------
    Module
        Its log says of each call on which device it runs, and why, and of each copy how many bytes
        it moves.

    Notes
    -----
    ``on_device`` places the call that makes its argument. A call without an annotation runs where
    its first operand is that was computed or is a parameter. Lets, branches and calls of functions
    get their values on the default device.
    """
    typed = infer_types(module)
    if not any(operator_of(node) == "on_device" for node in typed.nodes()):
        return module
    types = types_of(typed)
    log: list[Decision] = []
    functions = {
        name: f if f.is_kernel else _Placer(types, default, log).rewritten(f)
        for name, f in typed.functions.items()
    }
    return named(replace(typed, functions=functions, log=(*typed.log, *log)))


def without_annotations(module: Module) -> Module:
    """Return a module without ``on_device``: everything runs on one device.

    Parameters
    ----------
    module : Module
        The module.
    """
    if not any(operator_of(node) == "on_device" for node in module.nodes()):
        return module
    functions = {name: rewrite(f, _not_annotated) for name, f in module.functions.items()}
    return named(replace(module, functions=functions))


def _not_annotated(node: Node) -> Node:
    match node:
        case Call(Op("on_device"), (value,)):
            return value
    return node


@dataclass
class _Placer:
    """Rewrites the calls of a function one after the other."""

    types: Types
    default: str
    log: list[Decision]
    made: dict[Node, Node] = field(default_factory=dict)
    device: dict[Node, str] = field(default_factory=dict)
    """Where the value of a node of the old graph is."""
    copies: dict[tuple[Node, str], Expr] = field(default_factory=dict)

    def rewritten(self, function: Function) -> Function:
        """Return the function with copies in the place of annotations."""
        asked = {
            node.args[0]: str(attrs_of(node)["device"])
            for node in post_order(function)
            if isinstance(node, Call) and operator_of(node) == "on_device"
        }
        for node in post_order(function, _below):
            match node:
                case Call(Op("on_device"), (value,)):
                    self._annotation(node, value)
                case Call(Op()):
                    self._call(node, asked)
                case TupleGetItem(value) if not isinstance(value, Tuple):
                    self.made[node] = with_children(node, [self.made[value]])
                    self.device[node] = self._where(value)
                case TupleGetItem(Tuple(fields), index):
                    self.made[node] = self.made[fields[index]]
                    self.device[node] = self._where(fields[index])
                case Tuple(fields):
                    # Each field is where it was computed; a reader copies what it needs.
                    self.made[node] = with_children(node, [self.made[f] for f in fields])
                case _:
                    below = [c if isinstance(c, Op) else self.on(c, self.default)
                             for c in _below(node)]  # fmt: skip
                    self.made[node] = with_children(node, below) if below else node
        found = self.made[function]
        assert isinstance(found, Function)
        return found

    def _where(self, node: Node) -> str:
        return self.device.get(node, self.default)

    def _annotation(self, node: Call, value: Expr) -> None:
        device = str(attrs_of(node)["device"])
        # What is no call, such as a parameter, is copied.
        self.made[node] = self.on(value, device)
        self.device[node] = device

    def _call(self, call: Call, asked: dict[Expr, str]) -> None:
        device, rule = asked.get(call), "annotation"
        if device is None:
            device, rule = self._of_operands(call), "first operand"
        args = [self.on(arg, device) for arg in call.args]
        self.made[call] = with_children(call, [call.op, *args])
        self.device[call] = device
        name = call.name or operator_of(call)
        words = {
            "annotation": f"on_device asks for {device}",
            "first operand": f"its first operand is on {device}",
        }
        self.log.append(Decision(
            NAME, (name,), "placed", rule, f"{name} runs on {device}: {words[rule]}",
            "on_device(value, device)",
        ))  # fmt: skip

    def _of_operands(self, call: Call) -> str:
        """Return the device of the first operand that has one."""
        stack: list[Node] = list(reversed(call.args))
        while stack:
            node = stack.pop()
            if isinstance(node, Tuple):
                stack += reversed(node.fields)
            elif not isinstance(node, Constant):
                return self._where(node)
        return self.default

    def on(self, node: Node, device: str) -> Node:
        """Return a value on a device; constants are wherever they are used."""
        if isinstance(node, Constant | Op):
            return self.made.get(node, node)
        if isinstance(node, Tuple):
            return with_children(self.made[node], [self.on(f, device) for f in node.fields])
        source = self._where(node)
        if source == device:
            return self.made[node]
        if (node, device) not in self.copies:
            self.copies[node, device] = self._copied(node, source, device)
        return self.copies[node, device]

    def _copied(self, node: Node, source: str, target: str) -> Expr:
        value: Expr = self.made[node]  # type: ignore[assignment]  # no operator
        kind = self.types[node]
        name = getattr(node, "name", "") or type(node).__name__.lower()
        size = sum(nbytes(t) for t in tensor_types(kind) if t.is_static)
        self.log.append(Decision(
            NAME, (name,), "placed", "copy", f"{name} is copied from {source} to {target}",
            "place both on one device", effect=Effect(bytes=-size, kernels=-1),
        ))  # fmt: skip
        if isinstance(kind, TupleType):
            parts = tuple(
                _copy(TupleGetItem(value, i), source, target, "") for i in range(len(kind.fields))
            )
            return Tuple(parts)
        return _copy(value, source, target, f"{name}.{target}")


def _copy(value: Expr, source: str, target: str, name: str) -> Call:
    attrs = {"source": source, "target": target}
    return make_call(REGISTRY["device_copy"], [value], attrs, name)


def _below(node: Node) -> tuple[Node, ...]:
    return () if isinstance(node, Function) and node.is_kernel else children(node)
