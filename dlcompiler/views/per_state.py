"""Memoise what views derive from a schedule state."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import copy
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from dlcompiler.errors import DLCompilerError
from dlcompiler.schedule import Schedule, State

_Program = TypeVar("_Program", bound=Schedule | State)
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def per_state(
    function: Callable[Concatenate[_Program, _Parameters], _Result],
) -> Callable[Concatenate[_Program, _Parameters], _Result]:
    """Return `function`, computed once for each state and each set of further arguments.

    Parameters
    ----------
    function
        A pure function of a state and of hashable arguments. Its first argument is a `State`, or a
        `Schedule` on whose current state alone it depends.

    Returns
    -------
    callable
        The same function with memory. It returns the same object each time, so a caller that hands
        out a mutable result copies it.

    Notes
    -----
    States are frozen and compared by identity, therefore a result never becomes outdated. Results
    are kept as long as their state exists; they must not refer to it, or it would exist for ever.
    A `DLCompilerError` is a result as well: it is raised again as a copy without a traceback,
    because the frames of a traceback refer to the state.

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.schedule import create_schedule
    >>> @per_state
    ... def names(state):
    ...     print("computed")
    ...     return [stage.name for stage in state.stages]
    >>> A = te.placeholder((8,), name="A")
    >>> s = create_schedule(te.compute((8,), lambda i: A[i] + 1.0, name="B").op)
    >>> names(s.state)
    computed
    ['A', 'B']
    >>> names(s.state)
    ['A', 'B']
    """
    known: WeakKeyDictionary[State, dict[Hashable, _Result | _Raised]] = WeakKeyDictionary()

    @wraps(function)
    def remembered(
        program: _Program, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs
    ) -> _Result:
        state = program.state if isinstance(program, Schedule) else program
        results = known.setdefault(state, {})
        key = (args, tuple(sorted(kwargs.items())))
        if key not in results:
            try:
                results[key] = function(program, *args, **kwargs)
            except DLCompilerError as error:
                results[key] = _Raised(error)
                raise
        result = results[key]
        if isinstance(result, _Raised):
            raise copy(result.error)
        return result

    return remembered


class _Raised:
    """The error that a function raised instead of returning a result."""

    def __init__(self, error: DLCompilerError) -> None:
        self.error = copy(error)
