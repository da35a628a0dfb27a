"""Make a module of a PyTorch model: `torch.export` traces it, then each call is converted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.torch.names import name_and_span
from dlcompiler.graph.frontends.torch.node import AtenNode
from dlcompiler.graph.frontends.torch.operators import IGNORED, OPERATORS
from dlcompiler.graph.frontends.torch.package import (
    MOST_NODES,
    OPERATION,
    constant_of_tensor,
    torch_package,
    type_of,
)
from dlcompiler.graph.frontends.torch.tracing import exported
from dlcompiler.graph.ir import Constant, Expr, Function, Module, TensorType, Tuple, Var
from dlcompiler.graph.passes.tools import KnownTypes


def from_torch(
    module: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
) -> Module:
    """Return a PyTorch model as a module.

    Parameters
    ----------
    module : torch.nn.Module or torch.export.ExportedProgram
        The model, in inference mode: ``module.eval()``. It is traced with the arguments; a program
        is read as it is.
    args, kwargs
        Arguments of a call, tensors of the shapes and dtypes that the module is for.

    Returns
    -------
    Module
        Its parameters are the tensors among the arguments, in their order; weights are constants.
        Calls have the names of the modules that make them. The result is a tensor, or a tuple of
        all tensors of the result in their order.

    Raises
    ------
    GraphError
        The model cannot be traced, an operator is not known, or a shape depends on the values of
        tensors. The error names the call.

    Notes
    -----
    Indices that are out of bounds are an error in PyTorch; here they are clipped.

    **Source:** the ATen operators that ``torch.export`` gives; those without a converter are
    decomposed by PyTorch's own rules.
    """
    program = exported(module, args, dict(kwargs or {}))
    kinds = torch_package().export.graph_signature.InputKind
    state = {**program.state_dict, **program.constants}
    weights: dict[str, Constant] = {}
    params: list[Var] = []
    inputs: list[Any] = []
    places = [node for node in program.graph.nodes if node.op == "placeholder"]
    for node, spec in zip(places, program.graph_signature.input_specs, strict=True):
        if spec.kind is not kinds.USER_INPUT:
            found = state.get(spec.target)
            if not hasattr(found, "dtype"):
                raise GraphError(OPERATION, "the model has an object that is no tensor",
                                 got=str(spec.target))  # fmt: skip
            if spec.target not in weights:
                weights[spec.target] = constant_of_tensor(found, spec.target)
            inputs.append(weights[spec.target])
        elif hasattr(node.meta.get("val"), "dtype"):
            params.append(Var(node.name, type_of(node.meta["val"], f"argument {node.name}")))
            inputs.append(params[-1])
        else:  # a number or None, which the trace has taken as it is
            inputs.append(node.meta.get("val"))
    _refuse_writes(program)
    importer = GraphImporter(program.graph_module)
    results = flat(importer.run(inputs))
    if not results:
        raise GraphError(OPERATION, "the model returns no tensor")
    body = results[0] if len(results) == 1 else Tuple(tuple(results))
    return Module({"main": Function(tuple(params), body)})


def _refuse_writes(program: Any) -> None:
    """Refuse a model that changes its buffers or arguments: a module computes, and no more."""
    kinds = torch_package().export.graph_signature.OutputKind
    for spec in program.graph_signature.output_specs:
        if spec.kind is not kinds.USER_OUTPUT:
            raise GraphError(
                OPERATION, "the model writes to a tensor that is not its result",
                got=str(spec.target or spec.arg), hint="module.eval(): statistics stay as they are",
            )  # fmt: skip


def flat(value: Any) -> list[Expr]:
    """Return the tensors of a result, in their order."""
    if isinstance(value, Expr):
        return [value]
    if isinstance(value, list | tuple):
        return [each for part in value for each in flat(part)]
    if isinstance(value, dict):
        return [each for part in value.values() for each in flat(part)]
    if value is None:
        return []
    raise GraphError(OPERATION, "the result has a part that is no tensor", got=repr(value)[:100],
                     hint="return tensors only")  # fmt: skip


@dataclass
class GraphImporter:
    """What is known about a graph of ``torch.fx`` while its nodes become calls."""

    owner: Any
    """The ``GraphModule``: it has the constants that the graph reads."""
    types: KnownTypes = field(default_factory=lambda: KnownTypes({}))
    values: dict[Any, Any] = field(default_factory=dict)
    """Node -> expression, list of expressions, or what Python has."""
    names: Counter[str] = field(default_factory=Counter)

    def run(self, inputs: Sequence[Any]) -> Any:
        """Return the results of the graph with these inputs, as it nests them."""
        waiting = iter(inputs)
        if len(self.owner.graph.nodes) > MOST_NODES:
            raise GraphError(OPERATION, "the model is too large",
                             got=f"{len(self.owner.graph.nodes):,} calls",
                             expected=f"at most {MOST_NODES:,}")  # fmt: skip
        for node in self.owner.graph.nodes:
            match node.op:
                case "placeholder":
                    self.values[node] = value = next(waiting)
                    if isinstance(value, Var):
                        assert value.type is not None
                        self.types[value] = value.type
                case "get_attr":
                    self.values[node] = self._attribute(node)
                case "call_function":
                    self.values[node] = self._called(node)
                case "output":
                    return self._given(node.args[0])
                case _:
                    raise GraphError(OPERATION, "a call is not of an operator", got=str(node))
        raise GraphError(OPERATION, "the graph has no result")

    def _attribute(self, node: Any) -> Any:
        """Return a tensor that the graph holds, or a graph that an operator calls."""
        found = self.owner
        for part in str(node.target).split("."):
            found = getattr(found, part)
        return constant_of_tensor(found, str(node.target)) if hasattr(found, "dtype") else found

    def _given(self, value: Any) -> Any:
        """Return an argument with the values of nodes in their places."""
        torch = torch_package()
        if isinstance(value, torch.fx.Node):
            found = self.values[value]
            if isinstance(found, _Unknown):
                raise GraphError(found.where, "its results are not all known here",
                                 got=f"result {found.index} is read")  # fmt: skip
            return found
        if isinstance(value, list | tuple):
            return [self._given(each) for each in value]
        if isinstance(value, dict):
            return {key: self._given(each) for key, each in value.items()}
        if isinstance(value, slice):
            return slice(*map(self._given, (value.start, value.stop, value.step)))
        return value

    def _called(self, node: Any) -> Any:
        """Return the value of a call."""
        torch = torch_package()
        target = node.target
        if not isinstance(target, torch._ops.OpOverload):
            return self._python_call(node)
        full = target.name().removeprefix("aten::")
        packet = full.split(".")[0]
        if packet in IGNORED:
            return None
        converter = OPERATORS.get(full) or OPERATORS.get(packet.removesuffix("_copy"))
        name, span = name_and_span(node, packet)
        self.names[name] += 1
        if self.names[name] > 1:
            name = f"{name}.{self.names[name]}"
        given = _bound(target, self._given(node.args), self._given(node.kwargs))
        traced = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: n.meta.get("val"))
        made = AtenNode(
            name, self.types, full, given, _bound(target, *traced), node.meta.get("val"), span=span
        )
        if converter is None:
            made.fail("there is no such operator here", got=target.name())
        with made.refusing(OPERATION):
            found = converter(made)
        if isinstance(found, Expr):
            return self._checked(made, found, made.result)
        return [
            _Unknown(made.describe(), n) if value is None else self._checked(made, value, result)
            for n, (value, result) in enumerate(zip(found, made.result, strict=False))
        ]

    def _python_call(self, node: Any) -> Any:
        """Return the value of a call of Python: a part of a result, or arithmetic on numbers."""
        torch = torch_package()
        args = self._given(node.args)
        if node.target is torch.ops.higher_order.wrap_with_set_grad_enabled:
            _, body, *operands = args
            inside = GraphImporter(body, self.types, names=self.names)
            return inside.run(operands)
        module = getattr(node.target, "__module__", "")
        if module in ("_operator", "operator", "math", "builtins") and not any(
            isinstance(arg, Expr) for arg in args
        ):
            found = node.target(*args)
            if isinstance(found, _Unknown):
                raise GraphError(found.where, "one of its results is not known here",
                                 got=f"result {found.index} is read")  # fmt: skip
            return found
        raise GraphError(f"{OPERATION}: {node.name}", "there is no such operator here",
                         got=str(node.target))  # fmt: skip

    def _checked(self, node: AtenNode, value: Expr, result: Any) -> Expr:
        """Return a value that has the type that PyTorch found; another one is our mistake."""
        wanted, found = type_of(result, "a result"), self.types[value]
        if not isinstance(found, TensorType) or (found.shape, found.dtype) != (
            wanted.shape, wanted.dtype,
        ):  # fmt: skip
            node.fail("it was converted to another type", got=str(found), expected=str(wanted),
                      hint="this is a mistake of dlcompiler: please report it")  # fmt: skip
        return value


@dataclass(frozen=True)
class _Unknown:
    """A result that a converter does not compute."""

    where: str
    index: int


def _bound(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an operator by their names, with its defaults."""
    found: dict[str, Any] = {}
    for n, argument in enumerate(target._schema.arguments):
        if n < len(args) and not argument.kwarg_only:
            found[argument.name] = args[n]
        elif argument.name in kwargs:
            found[argument.name] = kwargs[argument.name]
        else:
            found[argument.name] = argument.default_value if argument.has_default_value() else None
    return found
