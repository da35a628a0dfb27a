"""What an operator is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.display import render
from dlcompiler.errors import TargetError
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.space import Config, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import PlaceholderOp, Tensor

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Reference:
    """Inputs of a workload, with the right outputs and how far a result may be from them."""

    inputs: Mapping[str, Array]
    """Arrays by the names of the parameters."""
    expected: Mapping[str, Array]
    """Outputs: those of floats in float64, all others in their dtypes (in float64 if exact)."""
    bound: Mapping[str, npt.NDArray[np.float64]]
    """Largest difference allowed for each element of the outputs; 0 asks for equality."""
    plain: Mapping[str, Array] = field(default_factory=dict)
    """What a caller has in place of inputs that were packed ahead, such as weights in OIHW."""


def as_expected(values: Any, dtype: str) -> Array:
    """Return right values of a dtype as `Reference` has them: integers stay integers."""
    made: Array = np.asarray(values)
    return made.astype(np.float64 if dtypes.is_float(dtype) else dtypes.to_numpy(dtype))


def _as_given(workload: Workload, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    del workload
    return arrays


@dataclass(frozen=True, slots=True, repr=False)
class Operator:
    """An operator of the library; its functions are pure."""

    name: str
    """Name in the registry."""
    workload: Callable[..., Workload]
    """Makes a workload from named parameters, or says what is wrong with them."""
    define: Callable[[Workload], tuple[Tensor, ...]]
    """Returns the parameters of the kernel as tensors: inputs first, outputs last."""
    reference: Callable[[Workload, int], Reference]
    """Returns inputs made from a seed, with the right outputs."""
    space: Callable[[Workload, Target], Space]
    """Returns what a tuner may choose."""
    default_config: Callable[[Workload, Target], Config]
    """Returns an analytic choice, without any measurement."""
    schedule: Callable[[Schedule, Sequence[Tensor], Config, Target], None]
    """Applies a config to a fresh schedule of the outputs."""
    prepack: Callable[[Workload, Mapping[str, Array]], Mapping[str, Array]] = _as_given
    """Returns the kernel's inputs from a caller's; what it changes is meant to be kept: weights."""
    packing: Callable[[Workload, Target], tuple[Schedule, tuple[Tensor, ...]]] | None = None
    """Returns the same as a kernel: a schedule with its parameters, as of `dlcompiler.ops.packing`;
    None: there is none, or nothing is packed ahead."""
    devices: frozenset[str] = frozenset({"cpu"})
    """Kinds of devices that it has a schedule for: see `Target.device`."""

    def check_device(self, target: Target) -> None:
        """Refuse a target that the operator has no schedule for.

        Raises
        ------
        TargetError
            With the kinds of devices that it has one for.
        """
        if target.device not in self.devices:
            raise TargetError(
                f"schedule {self.name} for {target.name}",
                "the operator has no schedule for this kind of device",
                got=repr(target.device),
                expected=", ".join(map(repr, sorted(self.devices))),
                hint="define it with te, and write a schedule: s = te.create_schedule(out.op)",
            )

    def template(
        self,
        workload: Workload,
        target: Target,
        cfg: Config,
        make: Callable[[tuple[Tensor, ...]], Schedule] = create_schedule,
    ) -> tuple[Schedule, tuple[Tensor, ...]]:
        """Return the schedule that a config stands for, and the kernel's parameters.

        Parameters
        ----------
        workload, target, cfg
            What is scheduled, for which machine, and how.
        make : callable
            Starts the schedule of the outputs: `create_schedule`, or `symbolic_schedule` to
            trace it.

        Raises
        ------
        ScheduleError
            If a primitive refuses what the config asks for.
        TargetError
            If the operator has no schedule for the kind of device.
        """
        self.check_device(target)
        args = self.define(workload)
        outs = tuple(tensor for tensor in args if not isinstance(tensor.op, PlaceholderOp))
        s = make(outs)
        self.schedule(s, outs, cfg, target)
        return s, args

    def __repr__(self) -> str:
        return f"Operator({self.name})"

    def _repr_html_(self) -> str:
        return render("operator", self)


@dataclass(frozen=True, slots=True)
class Selection:
    """How a computation is done."""

    operator: Operator
    """What does it."""
    workload: Workload
    """The computation, with the operator's own parameters."""
    config: Config
    """Of the operator's space."""
