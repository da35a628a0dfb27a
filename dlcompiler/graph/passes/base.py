"""The form of a pass on graphs, and the context that says which passes run."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dlcompiler.errors import GraphError
from dlcompiler.graph.ir import Module

MOST_LEVEL = 4
"""The level at which all passes run, as in Relay; [1]."""


@dataclass(frozen=True, slots=True)
class GraphPass:
    """A named step on modules."""

    name: str
    run: Callable[..., Module]
    """Takes a module, and options by name."""
    level: int = 0
    """Lowest optimisation level at which it runs, as in Relay; [1]."""

    def __call__(self, module: Module, **options: Any) -> Module:
        """Run the pass."""
        return self.run(module, **options)


@dataclass(frozen=True, slots=True)
class GraphChange:
    """The module before and after one pass."""

    number: int
    name: str
    before: Module
    after: Module
    seconds: float

    @property
    def is_unchanged(self) -> bool:
        """Tell whether the pass returned its input."""
        return self.before is self.after

    @property
    def effect(self) -> str:
        """What the pass changed, in a few words."""
        if self.is_unchanged:
            return "unchanged"
        difference = len(self.after.calls()) - len(self.before.calls())
        decisions = len(self.after.log) - len(self.before.log)
        return f"{difference:+} calls, {decisions} decisions"


Observer: TypeAlias = Callable[[GraphChange], None]


@dataclass(frozen=True, slots=True)
class PassContext:
    """Which passes run: those up to a level, without some, with others."""

    opt_level: int = 2
    """From 0 to 4. Passes of a higher level do not run; [1]."""
    required_pass: tuple[str, ...] = ()
    """Passes that run at every level."""
    disabled_pass: tuple[str, ...] = ()
    """Passes that never run."""
    config: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Options of single passes, by the names of the passes: ``{"fuse_ops": {"max_depth": 8}}``."""

    def runs(self, step: GraphPass) -> bool:
        """Tell whether a pass runs."""
        if step.name in self.disabled_pass:
            return False
        return step.name in self.required_pass or step.level <= self.opt_level


def run_passes(
    module: Module,
    steps: Sequence[GraphPass],
    context: PassContext = PassContext(),
    observers: Sequence[Observer] = (),
) -> Module:
    """Run passes in their order.

    Parameters
    ----------
    module : Module
        Where to begin.
    steps : sequence of GraphPass
        The passes.
    context : PassContext
        Decides which of them run.
    observers : sequence
        Called after each pass with a `GraphChange`.

    Raises
    ------
    GraphError
        If the context has options of a pass that is not there, or a pass raises it.
    """
    _check(context, steps)
    for number, step in enumerate(steps, 1):
        if not context.runs(step):
            continue
        start = time.perf_counter()
        after = step(module, **context.config.get(step.name, {}))
        seconds = time.perf_counter() - start
        for observer in observers:
            observer(GraphChange(number, step.name, module, after, seconds))
        module = after
    return module


def _check(context: PassContext, steps: Sequence[GraphPass]) -> None:
    """Refuse a context with a wrong level, or settings of passes or options that are not there."""
    level = context.opt_level
    if type(level) is not int or not 0 <= level <= MOST_LEVEL:
        raise GraphError(
            "run passes", "no such optimisation level", got=f"opt_level={level!r}"[:200],
            expected=f"an integer from 0 to {MOST_LEVEL}",
            hint="0 runs the fewest passes; 4 also combines parallel convolutions and products",
        )  # fmt: skip
    known = {step.name: step for step in steps}
    named = (*context.config, *context.required_pass, *context.disabled_pass)
    if unknown := [name for name in named if name not in known]:
        raise GraphError(
            "run passes", "the context names a pass that is not there", got=str(unknown[0]),
            expected=", ".join(known),
        )  # fmt: skip
    for name, options in context.config.items():
        try:
            inspect.signature(known[name].run).bind(None, **options)
        except TypeError as error:
            raise GraphError(
                "run passes", f"wrong options of {name}: {error}", got=repr(options)
            ) from None
