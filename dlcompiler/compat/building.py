"""`lower` and `build` with classic TVM's arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dlcompiler import pipeline
from dlcompiler.compat.accelerator_modules import AcceleratorModule
from dlcompiler.compat.conditions import current_conditions
from dlcompiler.compat.contexts import PassContext
from dlcompiler.compat.cuda_callbacks import call_back
from dlcompiler.compat.environments import accelerator_target
from dlcompiler.compat.modules import Module
from dlcompiler.compat.notes import note
from dlcompiler.compat.relay.modules import IRModule
from dlcompiler.compat.simulated import SimulatedModule
from dlcompiler.compat.targets import kind_of, resolve
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import PrimFunc
from dlcompiler.pipeline.accelerator_kernel import AcceleratorKernel
from dlcompiler.schedule import Schedule
from dlcompiler.schedule.state import AtRoot
from dlcompiler.target import Target as Machine
from dlcompiler.te import PlaceholderOp, Tensor


class LoweredModule(IRModule):
    """A lowered schedule, which prints as its loop nest and can be built."""

    classic = "tvm.IRModule"

    def __init__(
        self,
        func: PrimFunc,
        schedule: Schedule,
        args: Sequence[Any],
        conditions: Sequence[Any] = (),
    ) -> None:
        self.func = func
        """The loop IR."""
        self.schedule = schedule
        """The schedule as it was lowered."""
        self.args = tuple(args)
        """Its parameters."""
        self.conditions = tuple(conditions)
        """Conditions on its symbols for which it has a specialised body."""

    @property
    def functions(self) -> dict[Any, Any]:
        """The only function of the module, by name."""
        return {self.func.name: self.func}

    def __getitem__(self, name: Any) -> PrimFunc:
        if name not in self.functions:
            raise ScheduleError(
                f"lowered[{name!r}]", "no such function", expected=repr(self.func.name)
            )
        return self.func

    def __setitem__(self, name: Any, function: Any) -> None:
        raise ScheduleError("change a lowered module", "it does not change once it is lowered")

    def astext(self, show_meta_data: bool = True) -> str:
        """Return the program as text."""
        del show_meta_data
        return str(self.func)

    def script(self) -> str:
        """Return the program as text."""
        return str(self.func)

    def __str__(self) -> str:
        return str(self.func)

    def _repr_html_(self) -> str:
        return self.func._repr_html_()

    def __repr__(self) -> str:
        return str(self.func)


def lower(
    inp: Any,
    args: Sequence[Any] | None = None,
    name: str = "main",
    binds: object = None,
    simple_mode: bool = False,
    machine: Machine | None = None,
) -> LoweredModule:
    """Lower a schedule to its loop nest.

    Parameters
    ----------
    inp : Schedule
        What to lower.
    args : sequence
        Parameters of the function, inputs before outputs; inputs that nothing reads are ignored.
    name : str
        Name of the function.
    binds : None
        Buffers given by the caller are not part of dlcompiler yet.
    simple_mode : bool
        Stop before vectorization and unrolling, so that the loops are those of the schedule.
    machine : Target, optional
        What to lower for; this CPU by default.
    """
    if isinstance(inp, LoweredModule):
        return inp
    if binds is not None:
        raise ScheduleError(f"lower {name}", "binds= is not part of dlcompiler yet")
    arguments = _stored(inp, _arguments(args, f"lower {name}"))
    PassContext.check_current()
    conditions = current_conditions()
    func = pipeline.lower(
        inp, arguments, name=name, simple_mode=simple_mode, conditions=conditions,
        unread=unread_by(inp, arguments), target=machine or "cpu",
    )  # fmt: skip
    return LoweredModule(func, inp.fork(f"lowered {name}"), arguments, conditions)


def build(
    inputs: Any,
    args: Sequence[Any] | None = None,
    target: Any = None,
    target_host: Any = None,
    runtime: object = None,
    name: str = "default_function",
    binds: object = None,
) -> Module | SimulatedModule | AcceleratorModule:
    """Build a function from a schedule, or from what `lower` returned.

    Parameters
    ----------
    inputs : Schedule, what `lower` returned, or dict
        What to build; ``{target: lowered}`` with one entry also gives the target.
    args : sequence
        Parameters of the function, inputs before outputs; inputs that nothing reads are ignored.
    target : str or Target, optional
        What to build for; the current target by default, else this CPU.
    target_host, runtime
        Accepted; nothing here depends on them.
    name : str
        Name of the function.
    binds : None
        Buffers given by the caller are not part of dlcompiler yet.
    """
    del target_host, runtime
    if binds is not None:
        raise ScheduleError(f"build {name}", "binds= is not part of dlcompiler yet")
    conditions = current_conditions()
    if isinstance(inputs, Mapping) and len(inputs) == 1:
        ((target, inputs),) = inputs.items()
    if isinstance(inputs, LoweredModule):
        name = inputs.func.name if name == "default_function" else name
        conditions = inputs.conditions
        inputs, args = inputs.schedule, inputs.args
    machine = accelerator_target(target) or resolve(target)
    PassContext.check_current()
    arguments = _arguments(args, f"build {name}")
    instrument = PassContext.current().instrument
    built = pipeline.build(
        inputs, arguments, machine, name, instrument=instrument, conditions=conditions,
        unread=unread_by(inputs, arguments),
    )  # fmt: skip
    if isinstance(built, pipeline.SimulatedKernel):
        note(f"build {name} for {machine.name}: the simulator runs it, not a GPU")
        module = SimulatedModule(built, kind_of(target))
        if kind_of(target) in ("cuda", "gpu"):
            call_back(built.source("cuda"), name, target)
        return module
    if isinstance(built, AcceleratorKernel):
        return AcceleratorModule(built)
    assert isinstance(built, pipeline.Kernel)  # classic targets name no other device
    return Module(built)


def _stored(schedule: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Drop tensors without a buffer from the parameters; classic code lists them for printing.

    A tensor that is inlined or computed inside a loop has no buffer that a caller could pass.
    `build` refuses such a parameter, since its parameters are those of the call.
    """
    if not isinstance(schedule, Schedule):
        return args
    inner = [
        arg
        for arg in args
        if isinstance(arg, Tensor)
        and (stage := schedule.state.find(arg)) is not None
        and not isinstance(stage.attachment, AtRoot)
    ]
    if inner:
        names = ", ".join(tensor.name for tensor in inner)
        note(
            f"lower: {names} is computed inside another stage, so it is left out of the parameters",
            4,
        )
    return tuple(arg for arg in args if arg not in inner)


def unread_by(schedule: Any, args: Sequence[Any]) -> tuple[Tensor, ...]:
    """Return the placeholders among the arguments that no stage of a schedule reads.

    Classic operators with an optional bias pass the bias even if it is not read.
    """
    if not isinstance(schedule, Schedule):
        return ()
    placeholders = (
        arg for arg in args if isinstance(arg, Tensor) and isinstance(arg.op, PlaceholderOp)
    )
    return tuple(arg for arg in placeholders if schedule.state.find(arg) is None)


def _arguments(args: Any, operation: str) -> tuple[Any, ...]:
    if isinstance(args, list | tuple):
        return tuple(args)
    raise ScheduleError(operation, "no list of arguments", got=repr(args), expected="[A, B, C]")
