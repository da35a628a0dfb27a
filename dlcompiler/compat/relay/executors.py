"""`relay.build` and graph executors: models that run.

A model for a CPU is compiled when it first runs. What cannot be compiled (a model for a GPU, with
branches, or with extents that only a run decides) runs by NumPy, kernel by kernel; a note says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dlcompiler import dtypes, graph
from dlcompiler.compat.arrays import NDArray, array
from dlcompiler.compat.devices import Device
from dlcompiler.compat.missing import Named
from dlcompiler.compat.modules import BenchmarkResult, timed
from dlcompiler.compat.notes import note
from dlcompiler.compat.relay.modules import IRModule, module_of
from dlcompiler.compat.relay.optimizing import Params, bound, build_sequence, plain
from dlcompiler.compat.relay.params import load_param_dict
from dlcompiler.compat.targets import resolve
from dlcompiler.errors import CallError, GraphError, UserError
from dlcompiler.graph.passes import PassContext
from dlcompiler.target import Target

_FUSED = PassContext(0)
"""Of a module whose calls are kernels already."""


def build(
    mod: Any, target: Any = None, target_host: Any = None, executor: Any = None,
    runtime: Any = None, workspace_memory_pools: Any = None,
    constant_memory_pools: Any = None, params: Params | None = None, mod_name: str = "default",
) -> GraphFactory:  # fmt: skip
    """Optimise a model, and make what runs it.

    Parameters
    ----------
    mod : IRModule or Function
        The model.
    target : str or Target, optional
        What the model is compiled for. Where that is not possible, it runs by NumPy, with a note.
    target_host, executor, runtime, workspace_memory_pools, constant_memory_pools
        Accepted, without effect.
    params : mapping, optional
        Arrays for parameters of ``main``, which become constants.
    mod_name : str
        Name of the module.

    Returns
    -------
    GraphFactory
        ``lib["default"](device)`` for `GraphModule`. It can be unpacked: graph, lib, params.
    """
    del target_host, executor, runtime, workspace_memory_pools, constant_memory_pools
    chosen = resolve(
        next(iter(target.values())) if isinstance(target, Mapping) and target else target
    )
    module = module_of(mod, "relay.build")
    made = build_sequence(is_fused=True)(bound(module, params)).graph
    given = {name: array(plain(value)) for name, value in (params or {}).items()}
    return GraphFactory(made, given, mod_name, chosen)


class GraphFactory(Named):
    """What `build` returns: the optimised model and its parameters."""

    classic = "tvm.relay.backend.executor_factory.GraphExecutorFactoryModule"

    def __init__(
        self, module: graph.Module, params: dict[str, NDArray], name: str, target: Target
    ) -> None:
        self.target = target
        """What it is compiled for."""
        self.ir_mod = IRModule.of(module)
        """The optimised module."""
        self.params = params
        """The arrays that were given to `build`, now constants of the module."""
        self.libmod_name = name
        """Name of the module."""

    @property
    def module(self) -> graph.Module:
        """The optimised module: it shows itself and its decisions."""
        return self.ir_mod.graph

    @cached_property
    def compiled(self) -> graph.RunnableModel | None:
        """The compiled model; None if NumPy runs it, which a note explains."""
        try:
            return graph.build(self.module, self.target, context=_FUSED)
        except UserError as error:
            note(f"relay.build: the model runs by NumPy, not as compiled code: {error.problem}")
            return None

    def get_params(self) -> dict[str, NDArray]:
        """Return the arrays that were given to `build`."""
        return self.params

    def get_graph_json(self) -> str:
        """Return the optimised module as JSON, in the form of this project."""
        return graph.to_json(self.module)

    get_executor_config = get_graph_json
    graph_json = property(get_graph_json)

    def get_lib(self) -> GraphFactory:
        """Return this object, which also stands for the code."""
        return self

    @property
    def lib(self) -> GraphFactory:
        """The object itself, which also stands for the code."""
        return self

    def __getitem__(self, name: str) -> Callable[..., GraphModule]:
        if name not in ("default", self.libmod_name):
            raise GraphError(f"lib[{name!r}]", "no such model", expected=repr(self.libmod_name))
        return lambda *devices: GraphModule(self)

    def __iter__(self) -> Any:
        note("relay.build: its result is unpacked as graph, lib, params; lib is the model itself")
        return iter((self.get_graph_json(), self, self.params))


class GraphModule(Named):
    """A model with inputs that are set, and outputs that are read.

    Parameters
    ----------
    module : GraphFactory or GraphModule
        What `build` returned, or ``lib["default"](device)``.
    """

    classic = "tvm.contrib.graph_executor.GraphModule"

    def __init__(self, module: Any) -> None:
        factory = module.factory if isinstance(module, GraphModule) else module
        if not isinstance(factory, GraphFactory):
            raise GraphError("GraphModule", "not a built model", got=type(module).__name__,
                             expected='lib["default"](device)')  # fmt: skip
        self.factory: GraphFactory = factory
        """What `build` returned."""
        main = factory.module.main
        types = graph.types_of(factory.module)
        self._kinds = {param.name: types[param] for param in main.params}
        self._inputs: dict[str, NDArray] = {}
        self._outputs: list[NDArray] | None = None

    @property
    def module(self) -> GraphModule:
        """The object itself: classic code measures it by `time_evaluator`."""
        return self

    def set_input(self, key: Any = None, value: Any = None, **params: Any) -> None:
        """Set inputs.

        Parameters
        ----------
        key : str or int, optional
            Name or number of an input.
        value : array
            Its value.
        **params
            Values by name. A parameter that `build` made a constant may be given its own value.

        Raises
        ------
        CallError
            If there is no such input, or a value does not fit.
        """
        if key is not None:
            self._set(self._name(key), value)
        for name, each in params.items():
            self._set(name, each)

    set_input_zero_copy = set_input

    def _name(self, key: Any) -> str:
        names = [*self._kinds]
        if isinstance(key, int) and 0 <= key < len(names):
            return names[key]
        return str(key)

    def _set(self, name: str, value: Any) -> None:
        values = plain(value)
        if name not in self._kinds:
            self._check_constant(name, values)
            return
        kind = self._kinds[name]
        shape = kind.shape if isinstance(kind, graph.TensorType) else ()
        if not isinstance(kind, graph.TensorType) or not fits(values.shape, shape):
            raise CallError(
                f"set_input {name}", "wrong shape", got=values.shape, expected=repr(kind)
            )
        self._inputs[name] = array(values.astype(_numpy(kind)))

    def _check_constant(self, name: str, values: Any) -> None:
        own = self.factory.params.get(name)
        if own is None:
            raise CallError(
                f"set_input {name}", "the model has no such input",
                expected=", ".join(self._kinds) or "none",
            )  # fmt: skip
        if own.shape != values.shape or not np.array_equal(own.data, values, equal_nan=True):
            raise CallError(
                f"set_input {name}", "relay.build made this parameter a constant of another value",
                hint=f"leave {name} out of relay.build(params=…)",
            )  # fmt: skip

    def run(self, **inputs: Any) -> None:
        """Compute the outputs.

        Parameters
        ----------
        **inputs
            Inputs to set before, by name.
        """
        self.set_input(**inputs)
        if missing := [name for name in self._kinds if name not in self._inputs]:
            raise CallError(
                "run the model", "an input is not set", got=missing[0],
                hint=f"set_input({missing[0]!r}, array)",
            )  # fmt: skip
        values = [self._inputs[name].data for name in self._kinds]
        model = self.factory.compiled
        result = graph.evaluate(self.factory.module, *values) if model is None else model(*values)
        self._outputs = [array(each) for each in _flat(result)]

    def get_num_outputs(self) -> int:
        """Return the number of outputs."""
        module = self.factory.module
        kind = graph.types_of(module)[module.main]
        return len(graph.ir.tensor_types(kind.result)) if isinstance(kind, graph.FuncType) else 1

    def get_num_inputs(self) -> int:
        """Return the number of inputs; parameters that are constants are none."""
        return len(self._kinds)

    def get_input(self, index: Any, out: NDArray | None = None) -> NDArray | None:
        """Return the value of an input, by name or number; None if it is not set.

        Parameters
        ----------
        index : str or int
            Which one.
        out : NDArray, optional
            Where to copy it.
        """
        found = self._inputs.get(self._name(index))
        return out.copyfrom(found) if out is not None and found is not None else found

    def get_input_index(self, name: str) -> int:
        """Return the number of an input; -1 if there is none of this name."""
        names = [*self._kinds]
        return names.index(name) if name in names else -1

    def get_input_info(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the shapes and the dtypes of the inputs."""
        kinds = {k: v for k, v in self._kinds.items() if isinstance(v, graph.TensorType)}
        return {k: v.shape for k, v in kinds.items()}, {k: v.dtype for k, v in kinds.items()}

    def get_output(self, index: int, out: NDArray | None = None) -> NDArray:
        """Return an output.

        Parameters
        ----------
        index : int
            Which one.
        out : NDArray, optional
            Where to copy it.
        """
        if self._outputs is None:
            raise CallError("get_output", "the model was not run yet", hint="run()")
        if not 0 <= index < len(self._outputs):
            raise CallError(
                "get_output", "no such output", got=index, expected=f"0 to {len(self._outputs) - 1}"
            )
        found = self._outputs[index]
        return found if out is None else out.copyfrom(found)

    def load_params(self, params_bytes: bytes) -> None:
        """Set inputs from what `save_param_dict` returned."""
        self.set_input(**load_param_dict(params_bytes))

    def time_evaluator(
        self, func_name: str, dev: Device | None = None, number: int = 10, repeat: int = 1,
        min_repeat_ms: int = 0, **options: Any,
    ) -> Callable[..., BenchmarkResult]:  # fmt: skip
        """Return a function that measures `run`.

        Parameters
        ----------
        func_name : str
            ``"run"``.
        dev : Device, optional
            Accepted.
        number, repeat : int
            Runs in a row, whose mean is one result, and number of results; [1].
        min_repeat_ms : int
            Least duration of each row; [ms].
        **options
            Accepted, without effect.
        """
        del dev, options
        if func_name != "run":
            raise GraphError("time_evaluator", "only run is measured", got=func_name)
        if self.factory.compiled is None:
            note("time_evaluator: these are times of NumPy, not of compiled code")
        return lambda: timed(self.run, number, repeat, min_repeat_ms / 1000)

    def benchmark(
        self, device: Device | None = None, func_name: str = "run", repeat: int = 5,
        number: int = 5, min_repeat_ms: int | None = None, end_to_end: bool = False,
        **kwargs: Any,
    ) -> BenchmarkResult:  # fmt: skip
        """Measure `run`.

        Parameters
        ----------
        device, func_name, repeat, number, min_repeat_ms
            As for `time_evaluator`.
        end_to_end : bool
            Accepted: copying is part of it.
        **kwargs
            Inputs to set before.
        """
        del end_to_end
        self.set_input(**kwargs)
        return self.time_evaluator(func_name, device, number, repeat, min_repeat_ms or 0)()

    def __getitem__(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(self, name)
        return found


def create(graph_json_str: str, libmod: Any, device: Any = None) -> GraphModule:
    """Return the model that `build` made: an older form of ``GraphModule(lib["default"](dev))``.

    Parameters
    ----------
    graph_json_str : str
        Accepted: the model is in the library.
    libmod : GraphFactory
        The library.
    device : Device, optional
        Accepted.
    """
    del graph_json_str, device
    return GraphModule(libmod)


def _flat(value: Any) -> list[Any]:
    """Return the arrays of a result from left to right."""
    if not isinstance(value, tuple):
        return [value]
    return [each for field in value for each in _flat(field)]


def fits(shape: Sequence[int], expected: Sequence[Any]) -> bool:
    """Tell whether a shape is the expected one, in which some extents may be any."""
    return len(shape) == len(expected) and all(
        b is graph.ANY or a == b for a, b in zip(shape, expected, strict=True)
    )


def _numpy(kind: graph.TensorType) -> Any:
    return dtypes.to_numpy(kind.dtype)
