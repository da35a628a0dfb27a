"""dlcompiler as a backend of ``torch.compile``: models run as they are, in parts that are compiled.

PyTorch cuts a model into graphs, takes writes and shared memory out of them, and calls `backend`
for each. Weights become constants, so that they are folded and packed; a graph is built anew when
one of them has changed.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import DLCompilerError, GraphError
from dlcompiler.graph.execution import build
from dlcompiler.graph.frontends.torch.importer import GraphImporter
from dlcompiler.graph.frontends.torch.package import (
    OPERATION,
    constant_of_tensor,
    dtype_of,
    torch_package,
    type_of,
)
from dlcompiler.graph.frontends.torch.tracing import decompositions
from dlcompiler.graph.ir import Constant, Expr, Function, Module, Tuple, Var
from dlcompiler.graph.operators.base import Array

Call: TypeAlias = Callable[..., Any]


def backend(graph: Any, inputs: Sequence[Any]) -> Call:
    """Compile a graph of ``torch.compile(model, backend="dlcompiler")`` for the CPU.

    Parameters
    ----------
    graph : torch.fx.GraphModule
        A part of a model.
    inputs : sequence of torch.Tensor
        Its inputs, weights among them.

    Returns
    -------
    callable
        Computes the graph. What dlcompiler cannot compute runs in PyTorch, with a warning that
        says why: gradients, operators without a converter, and shapes that are not known.
    """
    torch = torch_package()
    if torch.is_grad_enabled() and any(getattr(x, "requires_grad", False) for x in inputs):
        _warn("it computes gradients; call the model within torch.no_grad()")
        return graph.forward  # type: ignore[no-any-return]  # torch has no types here
    if not all(isinstance(x, torch.Tensor) for x in inputs):
        _warn("an extent or a number is known only in a run; torch.compile(…, dynamic=False)")
        return graph.forward  # type: ignore[no-any-return]  # torch has no types here
    if any(x.device.type != "cpu" for x in inputs):
        _warn("its tensors are not on the CPU")
        return graph.forward  # type: ignore[no-any-return]  # torch has no types here
    weights = [n for n, x in enumerate(inputs) if _is_weight(x)]
    return _Part(graph, weights)


@dataclass
class _Part:
    """A graph, and what was compiled of it for the weights that it was called with."""

    graph: Any
    weights: Sequence[int]
    """The inputs that are weights."""
    compiled: dict[tuple[int, ...], _Compiled] = field(default_factory=dict)
    """By the identities of the weights."""

    def __call__(self, *inputs: Any) -> Any:
        found = self._present(inputs)
        if found is None:
            with importlib.import_module("torch._dynamo.convert_frame").compile_lock:
                found = self._present(inputs) or self._made(inputs)  # another thread may have
        return found.call(*inputs)

    def _key(self, inputs: Sequence[Any]) -> tuple[int, ...]:
        return tuple(id(inputs[n]) for n in self.weights)

    def _present(self, inputs: Sequence[Any]) -> _Compiled | None:
        """Return what was compiled for these weights as they are; None: nothing was."""
        found = self.compiled.get(self._key(inputs))
        is_right = found is not None and not any(w.has_changed() for w in found.weights)
        return found if is_right else None

    def _made(self, inputs: Sequence[Any]) -> _Compiled:
        if self._key(inputs) in self.compiled:
            self._leave_out_changed(inputs)
        found = _compiled(self.graph, inputs, self.weights)
        self.compiled[self._key(inputs)] = found
        return found

    def _leave_out_changed(self, inputs: Sequence[Any]) -> None:
        """Count buffers that have changed among the other inputs: a model may write to them."""
        parameter = torch_package().nn.Parameter
        weights = {id(weight.tensor): weight for each in self.compiled.values()
                   for weight in each.weights}  # fmt: skip
        self.weights = [
            n for n in self.weights
            if isinstance(inputs[n], parameter) or not weights[id(inputs[n])].has_changed()
        ]  # fmt: skip


@dataclass(frozen=True)
class _Compiled:
    weights: Sequence[_Weight]
    call: Call


class _Weight:
    """A tensor that was made a constant, and how it was then.

    PyTorch counts writes, but not those through ``weight.data``. That is why a few elements from
    all over the tensor are looked at, too.
    """

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        """Kept, so that no other tensor gets its identity."""
        steps = tuple(slice(None, None, max(extent // 3, 1)) for extent in tensor.shape)
        self._some = _bits(tensor.detach()[steps])
        self._then = self._now()

    def has_changed(self) -> bool:
        """Tell whether it lies elsewhere, was written to, or has other elements."""
        return self._now() != self._then

    def _now(self) -> tuple[int, int, bytes]:
        tensor = self.tensor
        version = 0 if tensor.is_inference() else tensor._version
        return tensor.data_ptr(), version, self._some.tobytes()


def _is_weight(value: Any) -> bool:
    """Tell whether an input is a parameter or a buffer of a module."""
    parameter = torch_package().nn.Parameter
    return isinstance(value, parameter) or hasattr(value, "_dynamo_static_input_type")


def _compiled(graph: Any, inputs: Sequence[Any], weights: Sequence[int]) -> _Compiled:
    """Return a graph, compiled for its present weights."""
    simplified = importlib.import_module("torch._functorch.aot_autograd").aot_module_simplified
    with_elements = importlib.import_module("torch._subclasses.fake_tensor").unset_fake_temporarily
    kept = [_Weight(inputs[n]) for n in weights]
    constants = {n: constant_of_tensor(inputs[n], f"weight_{n}") for n in weights}

    def compiler(flat: Any, _inputs: Sequence[Any]) -> Call:
        with with_elements():  # PyTorch traces with tensors that have none
            return _boxed(_model_or_graph(flat, constants))

    try:
        call = simplified(
            graph, list(inputs), fw_compiler=compiler, inference_compiler=compiler,
            decompositions=decompositions(),
        )  # fmt: skip
    except Exception as error:  # what PyTorch cannot trace, it may still run
        _warn(f"it cannot be traced: {type(error).__name__}: {error}"[:300])
        call = graph.forward
    return _Compiled(kept, call)


def _boxed(call: Call) -> Call:
    """Return a function of one list, which it empties: how PyTorch calls what is compiled."""

    def boxed(inputs: list[Any]) -> Any:
        args = list(inputs)
        inputs.clear()
        return call(*args)

    boxed._boxed_call = True  # type: ignore[attr-defined]  # a mark of PyTorch
    return boxed


def _model_or_graph(flat: Any, weights: Mapping[int, Constant]) -> Call:
    """Return what computes a graph: a model of dlcompiler, or PyTorch where that is impossible."""
    try:
        return _Model(flat, weights)
    except DLCompilerError as error:
        _warn(str(error))
        return flat.forward  # type: ignore[no-any-return]  # torch has no types here


class _Model:
    """A graph of ATen operators as a model, called with tensors.

    Parameters
    ----------
    flat : torch.fx.GraphModule
        The graph; it writes to nothing.
    weights : mapping
        Number of an input -> the constant that it is.
    """

    def __init__(self, flat: Any, weights: Mapping[int, Constant]) -> None:
        places = [node for node in flat.graph.nodes if node.op == "placeholder"]
        inputs: list[Any] = []
        for n, node in enumerate(places):
            kind = type_of(node.meta["val"], f"argument {node.name}")
            is_weight = n in weights and weights[n].type == kind
            inputs.append(weights[n] if is_weight else Var(node.name, kind))
        params = tuple(x for x in inputs if isinstance(x, Var))
        self._given = [n for n, x in enumerate(inputs) if isinstance(x, Var)]
        self._results = list(GraphImporter(flat).run(inputs))
        self._layouts = _layouts(flat)
        results = tuple(each for each in self._results if isinstance(each, Expr))
        module = Module({"main": Function(params, Tuple(results))})
        self._model = build(module, threads=torch_package().get_num_threads()) if results else None

    def __call__(self, *args: Any) -> list[Any]:
        arrays = [_array(args[n]) for n in self._given]
        found: Iterator[Any] = iter(self._model(*arrays) if self._model is not None else ())
        return [
            _laid_out(_tensor(next(found)), layout) if isinstance(each, Expr) else each
            for each, layout in zip(self._results, self._layouts, strict=True)
        ]


def _layouts(flat: Any) -> list[Any]:
    """Return the strides of the results as PyTorch has them; None where they are those of rows.

    Raises
    ------
    GraphError
        Two results share memory.
    """
    torch = torch_package()
    (output,) = (node for node in flat.graph.nodes if node.op == "output")
    values = [getattr(node, "meta", {}).get("val") for node in output.args[0]]
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    if len({value.untyped_storage()._cdata for value in tensors}) < len(tensors):
        raise GraphError(OPERATION, "two results share memory")
    return [
        value.stride() if isinstance(value, torch.Tensor) and not value.is_contiguous() else None
        for value in values
    ]


def _laid_out(tensor: Any, strides: Any) -> Any:
    """Return a tensor with other strides, such as channels last."""
    if strides is None:
        return tensor
    made = torch_package().empty_strided(tensor.shape, strides, dtype=tensor.dtype)
    return made.copy_(tensor)


def _array(tensor: Any) -> Array:
    """Return the memory of a tensor as an array; its elements are copied if they are not rows."""
    return _bits(tensor.detach().contiguous()).view(dtypes.to_numpy(dtype_of(tensor.dtype)))


def _bits(tensor: Any) -> Array:
    """Return a tensor as an array in the same memory; one of bfloat16 as integers."""
    torch = torch_package()
    return (tensor.view(torch.int16) if tensor.dtype is torch.bfloat16 else tensor).numpy()  # type: ignore[no-any-return]  # torch has no types here


def _tensor(array: Array) -> Any:
    """Return an array as a tensor in the same memory."""
    torch = torch_package()
    array = np.asarray(array)
    if dtypes.from_numpy(array.dtype) == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _warn(problem: str) -> None:
    warnings.warn(
        f"dlcompiler leaves a part of a model to PyTorch: {problem}", RuntimeWarning, stacklevel=3
    )
