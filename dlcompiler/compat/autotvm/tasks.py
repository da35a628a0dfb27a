"""Classic templates: functions that make a schedule, with knobs declared inside."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, wraps
from typing import Any, TypeAlias

from dlcompiler import te
from dlcompiler.analysis import work_of
from dlcompiler.autotune.templates import first_config, reference_of, workload_of
from dlcompiler.compat import targets
from dlcompiler.compat.autotvm.applying import ApplyConfig, current
from dlcompiler.compat.autotvm.configs import ConfigEntity, ConfigSpace
from dlcompiler.compat.building import unread_by
from dlcompiler.compat.schedules import made_by
from dlcompiler.errors import TuningError
from dlcompiler.ops import DeviceSchedule, Operator, Reference, by_device
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.space import Choices, Config, Space, Workload
from dlcompiler.target import Target

Function: TypeAlias = Callable[..., Any]
Made: TypeAlias = tuple[Schedule, Sequence[Any]]
_TENSOR = "TENSOR"

TEMPLATES: dict[str, Function] = {}
"""Name of a task -> its template, for the templates declared in this process."""


def template(task_name: str, func: Function | None = None) -> Any:
    """Declare a template: a function that returns a schedule and its parameters.

    A direct call uses the config that `apply_history_best` provides, or else first values.

    Parameters
    ----------
    task_name : str
        Name by which `create` finds it.
    func : callable, optional
        The function; without it, this is a decorator.
    """

    def decorate(function: Function) -> Function:
        TEMPLATES[task_name] = function

        @wraps(function)
        def dispatched(*args: Any, **kwargs: Any) -> Any:
            values = _positional(function, args, kwargs)
            workload = (task_name, *_stored(values))
            with ApplyConfig(current(targets.Target.current(), workload)):
                return function(*values)

        return dispatched

    return decorate if func is None else decorate(func)


class Task:
    """A template with its arguments; `create` makes one.

    Parameters
    ----------
    name : str
        Of the template.
    args : sequence
        Its arguments: numbers, names, tuples, placeholders.
    """

    def __init__(self, name: str, args: Sequence[Any]) -> None:
        self.name = name
        """Of the template."""
        self.args = _stored(args)
        """Its arguments."""
        self.kwargs: Mapping[str, Any] = {}
        """Empty: named arguments become positional ones."""
        self.target: targets.Target | None = None
        """The target that it is tuned for."""
        self._space: ConfigSpace | None = None
        self._made: Made | None = None

    @property
    def workload(self) -> tuple[Any, ...]:
        """Name and arguments of the task."""
        return (self.name, *self.args)

    @property
    def func(self) -> Function:
        """The template.

        Raises
        ------
        TuningError
            If this process has declared no template of this name.
        """
        if self.name not in TEMPLATES:
            close = difflib.get_close_matches(self.name, TEMPLATES, n=1)
            raise TuningError(
                f"find the task {self.name!r}", "no template has this name",
                expected=", ".join(map(repr, TEMPLATES)) or "@autotvm.template(name)",
                hint=f"did you mean {close[0]!r}?" if close else None,
            )  # fmt: skip
        return TEMPLATES[self.name]

    @property
    def config_space(self) -> ConfigSpace:
        """The space that the template declares with these arguments."""
        if self._space is None:
            self._space = ConfigSpace()
            self._made = self._run(self._space)
        return self._space

    @property
    def flop(self) -> float:
        """Number of operations of a call, given by ``add_flop`` or counted in the expression."""
        work = work_of(self._outputs())
        return self.config_space.flop or (float(work.flops) if work else 0.0)

    def instantiate(self, config: Choices) -> Made:
        """Return the schedule of a config, and its parameters."""
        return self._run(config)

    def _run(self, config: Choices) -> Made:
        with ApplyConfig(config), self.target or targets.Target("llvm"):
            made = self.func(*_given(self.args))
        if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], Schedule)):
            raise TuningError(
                f"instantiate the task {self.name!r}", "the template returned something else",
                got=repr(made)[:80], expected="a schedule and its parameters: s, [A, B, C]",
            )  # fmt: skip
        return made

    def _outputs(self) -> list[te.Tensor]:
        _ = self.config_space
        assert self._made is not None
        return [t for t in self._made[1] if not isinstance(t.op, te.PlaceholderOp)]

    @property
    def _symbol(self) -> str:
        """The task's name as an identifier, for kernels."""
        return re.sub(r"\W", "_", self.name)

    # -- as an operator ----------------------------------------------------------------------

    @cached_property
    def operator(self) -> Operator:
        """The task as an operator for `dlcompiler.autotune.run.tune`."""

        def define(work: Workload) -> tuple[te.Tensor, ...]:
            del work
            return _read(*self._run(ConfigSpace()))

        @cache
        def declared() -> tuple[te.Tensor, ...]:
            """Return the tensors for all references: a template takes long to run."""
            return define(self.work)

        def space(work: Workload, target: Target) -> Space:
            del target
            return self.config_space.space(work)

        def reference(work: Workload, seed: int) -> Reference:
            del work
            return reference_of(declared(), seed)

        def default_config(work: Workload, target: Target) -> Config:
            return first_config(space(work, target))

        def workload(**parameters: Any) -> Workload:
            return workload_of(self._symbol, self.func, parameters)

        schedule = DeviceSchedule(space, default_config, _no_schedule)
        return _TaskOperator(
            self._symbol,
            workload,
            define,
            reference,
            by_device(dict.fromkeys(("cpu", "gpu"), schedule)),
            task=self,
        )

    @cached_property
    def work(self) -> Workload:
        """The task as a workload for `dlcompiler.autotune.run.tune`."""
        names = list(inspect.signature(self.func).parameters)
        return workload_of(self._symbol, self.func, dict(zip(names, self.args, strict=False)))

    def __repr__(self) -> str:
        return (
            f"Task(func_name={self.name}, args={self.args}, kwargs={{}}, workload={self.workload})"
        )


@dataclass(frozen=True, slots=True, repr=False)
class _TaskOperator(Operator):
    """An operator whose template is a classic template, which makes the schedule itself."""

    task: Task | None = None

    def template(
        self,
        workload: Workload,
        target: Target,
        cfg: Config,
        make: Callable[[tuple[te.Tensor, ...]], Schedule] = create_schedule,
    ) -> tuple[Schedule, tuple[te.Tensor, ...]]:
        """Return the schedule of a config, and the kernel's parameters."""
        assert self.task is not None
        with made_by(make):
            entity = ConfigEntity.of(self.space(workload, target), cfg, index=0)
            s, args = self.task.instantiate(entity)
        return s, _read(s, args)


def _read(schedule: Schedule, args: Sequence[te.Tensor]) -> tuple[te.Tensor, ...]:
    """Return a template's parameters, without inputs that the schedule does not read."""
    unread = frozenset(unread_by(schedule, args))
    return tuple(arg for arg in args if arg not in unread)


def _no_schedule(*given: object) -> None:
    raise TuningError("schedule a classic template", "this template makes its own schedule")


def create(task_name: str, args: Sequence[Any], target: Any, target_host: Any = None) -> Task:
    """Make the task of a template and its arguments; the template declares its space.

    Parameters
    ----------
    task_name : str
        Given to `template`, or the decorated function itself.
    args : sequence
        Numbers, names, tuples, placeholders.
    target : str or Target
        What to tune for; this machine.
    target_host
        Accepted.

    Raises
    ------
    TuningError
        If there is no such template, or an argument is not plain data.
    """
    name = task_name
    if callable(task_name):
        name = next((n for n, f in TEMPLATES.items() if f is _inner(task_name)), str(task_name))
    task = Task(name, args)
    task.target = targets.Target(target, target_host)
    targets.resolve(task.target)
    _ = task.config_space
    return task


def _inner(function: Any) -> Any:
    return getattr(function, "__wrapped__", function)


def _positional(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    bound = inspect.signature(function).bind(*args, **kwargs)
    return list(bound.args) + list(bound.kwargs.values())


def _stored(values: Sequence[Any]) -> tuple[Any, ...]:
    """Convert arguments to the form of a log: placeholders become shape and dtype."""
    return tuple(map(_stored_one, values))


def _stored_one(value: Any) -> Any:
    if isinstance(value, te.Tensor):
        return (_TENSOR, tuple(value.static_shape), value.dtype)
    return tuple(map(_stored_one, value)) if isinstance(value, list | tuple) else value


def _given(values: Sequence[Any]) -> list[Any]:
    """Convert stored arguments to those of a template: shapes become new placeholders."""
    return [_given_one(value, n) for n, value in enumerate(values)]


def _given_one(value: Any, number: int) -> Any:
    match value:
        case ("TENSOR", tuple(shape), str(dtype)):
            return te.placeholder(shape, dtype, f"arg{number}")
    return value
