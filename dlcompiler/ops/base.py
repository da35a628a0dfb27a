"""The parts of an operator: its definition, its reference, and one schedule per kind of device."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.display import render
from dlcompiler.errors import DLCompilerError, TargetError, TuningError
from dlcompiler.registry import Registry
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.space import Config, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import PlaceholderOp, Tensor

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Reference:
    """Inputs of a workload with the expected outputs and the error allowed for each element."""

    inputs: Mapping[str, Array]
    """Arrays by the names of the parameters."""
    expected: Mapping[str, Array]
    """Outputs by name. Float outputs are given in float64; other outputs have their own dtype, or
    float64 where that holds them exactly."""
    bound: Mapping[str, npt.NDArray[np.float64]]
    """Largest difference allowed for each element of the outputs; 0 requires equality."""
    plain: Mapping[str, Array] = field(default_factory=dict)
    """The unpacked arrays of inputs that are packed ahead of a call, such as weights in OIHW."""


def as_expected(values: Any, dtype: str) -> Array:
    """Convert expected values to the dtype that `Reference` uses: floats to float64."""
    made: Array = np.asarray(values)
    return made.astype(np.float64 if dtypes.is_float(dtype) else dtypes.to_numpy(dtype))


def given_weight(
    workload: Workload, arrays: Mapping[str, Array], shape: tuple[int, ...], name: str = "weight"
) -> Array:
    """Return the unpacked weights among the arrays that `Operator.prepack` is given.

    Parameters
    ----------
    workload : Workload
        Whose weights they are.
    arrays : mapping
        Inputs by name.
    shape : tuple of int
        That of the weights.
    name : str
        Theirs.

    Raises
    ------
    TuningError
        If they are missing, or of another shape.
    """
    found = arrays.get(name)
    if not isinstance(found, np.ndarray) or found.shape != shape:
        kind = f"shape {found.shape}" if isinstance(found, np.ndarray) else type(found).__name__
        raise TuningError(
            f"pack the weights of {workload.op}", f"{name} is not as the workload says", got=kind,
            expected=f"an array of shape {shape}",
        )  # fmt: skip
    return found


def _as_given(workload: Workload, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    del workload
    return arrays


def _no_other(workload: Workload) -> Workload | None:
    del workload
    return None


@dataclass(frozen=True, slots=True)
class DeviceSchedule:
    """The schedule of an operator for one kind of device, with its knobs and default config."""

    space: Callable[[Workload, Target], Space]
    """Returns the knobs that a tuner may set, and their values."""
    default_config: Callable[[Workload, Target], Config]
    """Returns a config that a formula chooses, without any measurement."""
    apply: Callable[[Schedule, Sequence[Tensor], Config, Target], None]
    """Applies a config to a fresh schedule of the outputs."""
    packing: Callable[[Workload, Target], tuple[Schedule, tuple[Tensor, ...]]] | None = None
    """Returns the schedule and the parameters of a kernel that packs the weights: see
    `dlcompiler.ops.packing`. None if there is no such kernel, or if nothing is packed."""
    estimate: Callable[[Workload, Target], float] | None = None
    """Returns about how long the default config takes on one core [cycle]. `ops.select` compares
    it where several operators compute the same; None counts as slower than any estimate."""
    define: Callable[[Workload], tuple[Tensor, ...]] | None = None
    """Returns the same parameters as `Operator.define`, computed through the stages that this
    schedule needs. None: the operator's own definition."""


def by_device(schedules: Mapping[str, DeviceSchedule | str]) -> Registry[DeviceSchedule]:
    """Make the registry of an operator's schedules.

    Parameters
    ----------
    schedules : mapping
        Kind of device (`Target.device`) -> its schedule, or the place where it is defined:
        ``"package.module:attribute"``, which is imported when it is first used.
    """
    return Registry("schedule", schedules)


@dataclass(frozen=True, slots=True, repr=False)
class Operator:
    """An operator of the library: a definition, and a registry of schedules by kind of device.

    Notes
    -----
    A program adds a schedule for another kind of device by one line, without editing the package::

        ops.operator("matmul").schedules["gpu"] = DeviceSchedule(space, default_config, apply)

    ``tune``, ``best``, ``apply_best`` and ``ops.select`` then use it for targets of this kind.
    """

    name: str
    """Name in the registry."""
    make_workload: Callable[..., Workload]
    """Makes a workload from named parameters: see `workload`, which refuses those that do not
    fit."""
    define: Callable[[Workload], tuple[Tensor, ...]]
    """Returns the parameters of the kernel as tensors: inputs first, outputs last."""
    reference: Callable[[Workload, int], Reference]
    """Returns random inputs made from a seed, with the expected outputs."""
    schedules: Registry[DeviceSchedule] = field(hash=False, compare=False)
    """Kind of device -> the schedule for it. A program may add entries."""
    prepack: Callable[[Workload, Mapping[str, Array]], Mapping[str, Array]] = _as_given
    """Returns the kernel's inputs from a caller's inputs. The arrays that it changes are weights,
    which a caller packs once and keeps."""
    simpler: Callable[[Workload], Workload | None] = _no_other
    """Returns the workload of another operator that computes the same from the same arrays, which
    `ops.select` then takes; None: there is none."""

    def workload(self, **params: Any) -> Workload:
        """Make a workload from named parameters.

        Parameters
        ----------
        **params
            Extents and options, which differ between operators: ``m=64, n=64, k=64``.

        Raises
        ------
        TuningError
            If a parameter is missing, unknown, or not valid.
        """
        return workload_from(self.name, self.make_workload, params)

    def schedule_for(self, target: Target) -> DeviceSchedule:
        """Return the schedule for the kind of device of a target.

        Parameters
        ----------
        target : Target
            The machine.

        Raises
        ------
        TargetError
            If there is none; the message lists the kinds of devices that have one.
        TuningError
            If `target` is not a Target.
        """
        check_target(self.name, target)
        if target.device not in self.schedules:
            raise no_schedule(self.name, target, self.schedules)
        return self.schedules[target.device]

    def space(self, workload: Workload, target: Target) -> Space:
        """Return the knobs that a tuner may set for a target, and their values.

        Parameters
        ----------
        workload : Workload
            The work: `workload` makes it.
        target : Target
            The machine.

        Raises
        ------
        TargetError
            If the operator has no schedule for the kind of device.
        TuningError
            If an argument has the wrong type, or the workload is of another operator.
        """
        self._check_workload(workload)
        return self.schedule_for(target).space(workload, target)

    def default_config(self, workload: Workload, target: Target) -> Config:
        """Return the config that a formula chooses, without any measurement.

        Parameters
        ----------
        workload : Workload
            The work: `workload` makes it.
        target : Target
            The machine.

        Raises
        ------
        TargetError
            If the operator has no schedule for the kind of device.
        TuningError
            If an argument has the wrong type, or the workload is of another operator.
        """
        self._check_workload(workload)
        return self.schedule_for(target).default_config(workload, target)

    def template(
        self,
        workload: Workload,
        target: Target,
        cfg: Config,
        make: Callable[[tuple[Tensor, ...]], Schedule] = create_schedule,
    ) -> tuple[Schedule, tuple[Tensor, ...]]:
        """Apply a config to a fresh schedule; return the schedule and the kernel's parameters.

        Parameters
        ----------
        workload : Workload
            What is computed.
        target : Target
            The machine; its kind of device chooses the schedule.
        cfg : Config
            A config of `space`.
        make : callable
            Starts the schedule of the outputs: `create_schedule`, or `symbolic_schedule` to
            trace it.

        Raises
        ------
        ScheduleError
            If a primitive refuses a value of the config.
        TargetError
            If the operator has no schedule for the kind of device.
        TuningError
            If an argument has the wrong type, or the workload is of another operator.
        """
        self._check_workload(workload)
        chosen = self.schedule_for(target)
        if not isinstance(cfg, Config):
            raise _wrong(
                self.name, "cfg", cfg, "a Config: operator.space(workload, target).config(…)"
            )
        args = (chosen.define or self.define)(workload)
        outs = tuple(tensor for tensor in args if not isinstance(tensor.op, PlaceholderOp))
        s = make(outs)
        chosen.apply(s, outs, cfg, target)
        return s, args

    def _check_workload(self, workload: Workload) -> None:
        if not isinstance(workload, Workload):
            raise _wrong(self.name, "workload", workload, f"a Workload: {self.name}.workload(…)")
        if workload.op != self.name:
            raise TuningError(
                f"schedule {self.name}",
                "the workload is of another operator",
                got=str(workload),
                expected=f"{self.name}(…)",
            )

    def __repr__(self) -> str:
        return f"Operator({self.name})"

    def _repr_html_(self) -> str:
        return render("operator", self)


def workload_from(name: str, make: Callable[..., Workload], params: Mapping[str, Any]) -> Workload:
    """Make a workload from named parameters with the function of an operator.

    Parameters
    ----------
    name : str
        The operator, or the computation.
    make : callable
        Takes the parameters by their names.
    params : mapping
        What the caller gave.

    Raises
    ------
    TuningError
        If the parameters are no mapping, or if one is missing, unknown, or not valid.
    """
    operation = f"workload of {name}"
    if not isinstance(params, Mapping):
        raise TuningError(
            operation, "the parameters are not a mapping", got=_shown(params),
            expected="names and values, such as {'dtype': 'float32'}",
        )  # fmt: skip
    try:
        return make(**params)
    except DLCompilerError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # Python says which parameters are missing or unknown; sizes are checked by the operator.
        raise TuningError(
            operation, "the parameters are not valid",
            got=", ".join(f"{key}={_shown(value)}" for key, value in params.items()) or "none",
            because=str(error),
        ) from error  # fmt: skip


def _shown(value: object) -> str:
    """Return a value as a short text, also if it has too many digits to be printed."""
    try:
        return reprlib.repr(value)
    except ValueError:
        return f"a {type(value).__name__} that is too long to print"


def check_target(name: str, target: object) -> None:
    """Check that the target for the schedule of an operator is a `Target`, not a name."""
    if not isinstance(target, Target):
        raise _wrong(name, "target", target, "a Target: resolve('cpu')")


def _wrong(operator: str, argument: str, value: object, expected: str) -> TuningError:
    """Return the error for an argument of the wrong type."""
    problem = f"the argument {argument} has the wrong type"
    return TuningError(f"schedule {operator}", problem, got=repr(value), expected=expected)


def no_schedule(name: str, target: Target, devices: Iterable[str]) -> TargetError:
    """Return the error for a target whose kind of device has no schedule.

    Parameters
    ----------
    name : str
        The operator, or the computation.
    target : Target
        For which a schedule was needed.
    devices : iterable of str
        Kinds of devices that have one.
    """
    return TargetError(
        f"schedule {name} for {target.name}",
        "the operator has no schedule for this kind of device",
        got=repr(target.device),
        expected=", ".join(map(repr, sorted(devices))),
        hint="write one, and register it: "
        f"operator.schedules[{target.device!r}] = ops.DeviceSchedule(…)",
    )


@dataclass(frozen=True, slots=True)
class Selection:
    """The operator, workload and config that `ops.select` chose for a computation."""

    operator: Operator
    """The operator that computes it."""
    workload: Workload
    """The computation, with the operator's own parameters."""
    config: Config
    """A config of the operator's space."""
