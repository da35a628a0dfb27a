"""Make expressions of a program (MIL), operation by operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dlcompiler import dtypes
from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.coreml.conversion import converted
from dlcompiler.graph.frontends.coreml.messages import OPERATION, Message
from dlcompiler.graph.frontends.coreml.node import Operand, Operation
from dlcompiler.graph.frontends.coreml.operators import OPERATORS
from dlcompiler.graph.frontends.coreml.reading import Package, feature_type, type_of, value_of
from dlcompiler.graph.ir import Constant, Expr, Span, TensorType, Var
from dlcompiler.graph.passes.tools import KnownTypes


@dataclass
class ProgramImporter:
    """A program whose operations become calls: the values so far, and their types."""

    package: Package
    shapes: Mapping[str, Sequence[int]]
    types: KnownTypes = field(default_factory=lambda: KnownTypes({}))
    values: dict[str, Operand] = field(default_factory=dict)
    """Name of a value -> the value."""

    def run(self) -> tuple[list[Var], list[Expr]]:
        """Return the inputs and the outputs of the program."""
        function = _function(self.package.model["mlProgram"])
        params = [self._param(each) for each in function["inputs"]]
        self.values.update({param.name: param for param in params})
        block = _block(function)
        for item in block["operations"]:
            self._operation(item)
        names = [name for name in block["outputs"] if self.values.get(name) != ""]
        return params, [self._tensor(name) for name in names]

    def _param(self, given: Message) -> Var:
        """Return an input; the description of the model has a size for one that is open."""
        name = given["name"]
        kind, extents = type_of(given["type"], f"input {name!r}")
        known = {each["name"]: each for each in self.package.model["description"]["input"]}
        usual = feature_type(known[name]) if name in known else None
        shape: Any = self.shapes.get(name, extents)
        if None in shape and usual is not None and len(usual.shape) == len(shape):
            shape = usual.shape
        if None in shape or kind.dtype == "text":
            raise GraphError(OPERATION, f"input {name!r} has no known shape",
                             got=repr(extents), hint=f"shapes={{{name!r}: (…)}}")  # fmt: skip
        found = Var(name, TensorType(tuple(shape), kind.dtype))
        self.types[found] = TensorType(tuple(shape), kind.dtype)
        return found

    def _tensor(self, name: str) -> Expr:
        value = self.values.get(name)
        if not isinstance(value, Expr):
            raise GraphError(OPERATION, f"nothing computes the output {name!r}")
        return value

    def _operation(self, item: Message) -> None:
        """Add the results of an operation to the values."""
        outputs = item["outputs"]
        name = outputs[0]["name"] if outputs else ""
        if item["type"] == "const":
            self.values[name] = self._value(item["attributes"].get("val"), name)
            return
        if item["type"] == "classify":
            self._classify(item, name)
            return
        types = [type_of(each["type"], f"value {each['name']!r}") for each in outputs]
        inputs = {key: self._operands(each, name) for key, each in item["inputs"].items()}
        if item["type"].startswith("constexpr_"):
            inputs.update({
                key: [self._value(each, name)] for key, each in item["attributes"].items()
                if key != "name"
            })  # fmt: skip
        node = Operation(
            name, self.types, item["type"], inputs,
            [(kind.dtype, extents) for kind, extents in types], span=Span(node=name),
        )  # fmt: skip
        made = converted(node, OPERATORS)
        if len(made) != len(outputs):
            node.fail("it has another number of results", got=str(len(outputs)),
                      expected=str(len(made)))  # fmt: skip
        for each, value, wanted in zip(outputs, made, node.results, strict=True):
            self._check(node, value, *wanted)
            self.values[each["name"]] = value

    def _classify(self, item: Message, name: str) -> None:
        """Take the probabilities as the results of a classifier; its label is a text."""
        probabilities = item["inputs"].get("probabilities")
        self.values.update({each["name"]: "" for each in item["outputs"]})
        if probabilities is not None and item["outputs"]:
            self.values[item["outputs"][-1]["name"]] = self._operands(probabilities, name)[0]

    def _check(
        self, node: Operation, value: Expr, dtype: str, extents: Sequence[int | None]
    ) -> None:
        """Refuse a result that has another type in the file."""
        kind = self.types[value]
        is_same = isinstance(kind, TensorType) and kind.dtype == dtype
        if is_same and not self.shapes:  # the file has shapes for the usual ones of its inputs
            shape = kind.shape if isinstance(kind, TensorType) else ()
            is_same = len(shape) == len(extents) and all(
                own is None or own == n for own, n in zip(extents, shape, strict=True)
            )
        if not is_same:
            node.fail("its result has another type in the file", got=f"{dtype} {extents}",
                      expected=str(kind))  # fmt: skip

    def _operands(self, argument: Message, name: str) -> list[Operand]:
        """Return the operands of a parameter."""
        found: list[Operand] = []
        for each in argument["arguments"]:
            if each["value"] is not None:
                found.append(self._value(each["value"], name))
            elif each["name"] in self.values:
                found.append(self.values[each["name"]])
            else:
                raise GraphError(OPERATION, f"nothing computes an operand of {name!r}",
                                 got=repr(each["name"])[:100])  # fmt: skip
        return found

    def _value(self, given: Message | None, name: str) -> Operand:
        if given is None:
            raise GraphError(OPERATION, f"constant {name!r} has no value")
        found = value_of(self.package, given, f"constant {name!r}")
        if isinstance(found, str):
            return found
        made = Constant(found, name)
        self.types[made] = TensorType(found.shape, dtypes.from_numpy(found.dtype))
        return made


def _function(program: Message) -> Message:
    """Return the function that a program runs."""
    functions = program["functions"]
    if "main" in functions:
        found: Message = functions["main"]
        return found
    if len(functions) != 1:
        raise GraphError(OPERATION, "the program has no function main",
                         got=", ".join(functions)[:200] or "no functions")  # fmt: skip
    return next(iter(functions.values()))  # type: ignore[no-any-return]


def _block(function: Message) -> Message:
    """Return the operations of a function, in the set of operators that it names."""
    blocks = function["block_specializations"]
    if function["opset"] not in blocks:
        raise GraphError(OPERATION, "the function has no operations for its set of operators",
                         got=function["opset"] or "none")  # fmt: skip
    found: Message = blocks[function["opset"]]
    return found
