"""Lower a schedule to loop IR, and run the passes of the target."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from dlcompiler.errors import InternalError, ScheduleError, TargetError
from dlcompiler.ir import Allocate, Buffer, Expr, PrimFunc, Var, verify_func, walk
from dlcompiler.ir.names import checked_label, unique_name
from dlcompiler.ir.verify import Verified
from dlcompiler.lowering import build_nests
from dlcompiler.passes import Pass, specialize_conditions
from dlcompiler.pipeline.checks import NESTS, check_program
from dlcompiler.pipeline.observers import Change, Observer
from dlcompiler.pipeline.pipelines import EXTRA_PASSES, INSTRUMENTS, passes_of
from dlcompiler.schedule import Schedule, StageState, State, open_obligations
from dlcompiler.target import Target, resolve
from dlcompiler.te import PlaceholderOp, Tensor, symbols_of

Argument: TypeAlias = Tensor | Var
"""A parameter of a function: a tensor, or a symbol that is passed as a number."""


def lower(
    schedule: Schedule,
    args: Sequence[Argument],
    *,
    name: str = "main",
    target: str | Target = "cpu",
    observers: Sequence[Observer] = (),
    passes: Sequence[Pass] | None = None,
    simple_mode: bool = False,
    extra: Sequence[str] = (),
    instrument: str | None = None,
    conditions: Sequence[Expr] = (),
    unread: Sequence[Tensor] = (),
    verify_passes: bool = True,
    check_races: bool = True,
) -> PrimFunc:
    """Lower a schedule to loop IR.

    Parameters
    ----------
    schedule
        The schedule, at the state to lower.
    args
        The parameters of the function: inputs first, outputs last; symbols to be passed as numbers.
        An output that is left out is computed into memory of the function: the result can be
        read, but not built.
    name
        Name of the function.
    target
        A target or its name; it decides the passes.
    observers
        Called after each pass with a `Change`.
    passes
        Other passes than the target's.
    simple_mode
        Stop before vector operations and unrolling: the loops as the schedule names them.
    extra
        Names of `EXTRA_PASSES` to run after the others.
    instrument
        ``"bounds"``: put an assertion before each access that its indices are in the buffer.
    conditions
        Of symbols (``n >= 128``, ``m % 4 == 0``): the function gets a body of its own for sizes
        that fulfil all of them, without the checks that they make needless.
    unread
        Placeholders among `args` that no stage reads: parameters that the function ignores. By
        default they are refused: an unread placeholder is nearly always a mistake.
    verify_passes
        Verify the program after each pass, which shows the pass that is wrong; by default only
        after the last.
    check_races
        Refuse a program with races, or that reads what it has not written. A tuner checks only
        candidates that are faster than all before.

    Returns
    -------
    PrimFunc

    Raises
    ------
    ScheduleError
        If an obligation is open, the arguments do not fit the schedule, or concurrent iterations
        could not be shown to be independent.
    InternalError
        If they are not independent, or something is read before it is written, although each step
        was allowed.
    TargetError
        If the target is unknown, there are no passes for its device, or conditions are given for
        a GPU.
    """
    state = _state_of(schedule)
    checked_label(name, "lower")
    check_obligations(state, name)
    read = without_unread(args, unread)
    check_args(state, read, name)
    machine = resolve(target)
    chosen = passes_of(machine) if passes is None else tuple(passes)
    if simple_mode:
        chosen = chosen[:1]
    chosen = _specialized(chosen, conditions, machine)
    chosen = (*chosen, *(_named(item, EXTRA_PASSES, "extra pass", name) for item in extra))
    if instrument is not None:
        chosen = (*chosen, _named(instrument, INSTRUMENTS, "instrument", name))
    start = time.perf_counter()
    func = with_unread(build_nests(state, read, name), args, unread)
    seconds = time.perf_counter() - start
    check_symbols(func)
    verify = partial(verify_func, known=Verified()) if verify_passes else _trust
    verify(func, NESTS)
    _report(observers, Change(1, NESTS, None, func, seconds))
    done: set[str] = set()
    checked: PrimFunc | None = None
    last, made_by = func, NESTS
    for number, item in enumerate(chosen, 2):
        if missing := item.requires - done:
            raise InternalError(f"pass {item.name}", f"runs before {', '.join(missing)}")
        start = time.perf_counter()
        after = item.apply(func, machine)
        seconds = time.perf_counter() - start
        done |= item.establishes
        if after is not func:
            verify(after, item.name)
        _report(observers, Change(number, item.name, func, after, seconds))
        func = after
        if "no unrolled loops" not in done:
            last, made_by = func, item.name
        # Checked before fusing and vectorizing: the indices are still simple, and the check quick.
        if check_races and checked is None and "affine indices" in done:
            check_program(func, schedule, item.name)
            checked = func
    # The state before unrolling is checked: all copies of a loop body would give one answer.
    if check_races and last is not checked:
        check_program(last, schedule, made_by, is_repeated=checked is not None)
    if not verify_passes:
        verify_func(func)
    return func


def _specialized(
    chosen: tuple[Pass, ...], conditions: Sequence[Expr], target: Target
) -> tuple[Pass, ...]:
    """Insert the pass that adds a separate body for sizes that fulfil conditions."""
    if not conditions:
        return chosen
    if target.thread_axes:
        raise TargetError(
            "lower", "conditions choose between bodies on a CPU only",
            because="on a GPU each nest is a launch of its own", got=_texts(conditions),
            hint="build a program for each condition, and choose where they are called",
        )  # fmt: skip
    run = partial(specialize_conditions, conditions=tuple(conditions))
    special = Pass("specialize", run, requires=frozenset({"affine indices"}))
    return (
        *chosen[:1],
        special,
        *chosen[1:],
    )  # first, so that all later passes use what the conditions prove


def _trust(_func: PrimFunc, _after: str) -> None:
    """Do nothing: the program is verified after the last pass."""


def _state_of(schedule: object) -> State:
    if isinstance(schedule, Schedule):
        return schedule.state
    raise ScheduleError(
        "lower", "not a schedule", got=repr(schedule), expected="s = te.create_schedule(C.op)"
    )


def _named(wanted: str, known: Mapping[str, Pass], what: str, name: str) -> Pass:
    if wanted in known:
        return known[wanted]
    raise ScheduleError(
        f"lower {name}", f"no such {what}", got=repr(wanted), expected=", ".join(known)
    )


def _report(observers: Sequence[Observer], change: Change) -> None:
    for observer in observers:
        observer(change)


def check_obligations(state: State, name: str) -> None:
    """Refuse to lower a state with an open obligation."""
    for pending in open_obligations(state):
        raise ScheduleError(f"lower {name}", str(pending), hint=pending.hint)


def check_args(state: State, args: Sequence[Argument], name: str) -> None:
    """Refuse arguments that are not the inputs and outputs of the schedule."""
    if not isinstance(args, Iterable):
        raise ScheduleError(
            f"lower {name}", "no list of arguments", got=repr(args), expected="[A, B, C]"
        )
    for arg in args:
        if isinstance(arg, Var) and arg.is_symbol:
            continue
        if not isinstance(arg, Tensor):
            raise ScheduleError(
                f"lower {name}", "an argument is neither a tensor nor a symbol", got=repr(arg)
            )
        if any(arg in stage.aliases for stage in state.stages):
            raise ScheduleError(
                f"lower {name}",
                f"the argument {arg.name} is stored in another layout",
                hint="leave it out of the arguments: transform_layout is for what stays inside",
            )
        if not any(arg in stage.tensors for stage in state.stages):
            keep = f", or keep it as a parameter that is ignored: unread=[{arg.name}]"
            raise ScheduleError(
                f"lower {name}", "an argument is not part of the schedule", got=repr(arg),
                hint="leave it out" + (keep if isinstance(arg.op, PlaceholderOp) else ""),
            )  # fmt: skip
    if len(set(args)) != len(args):
        raise ScheduleError(f"lower {name}", "an argument is given twice", got=_names(args))
    _refuse_missing(state, args, name, [s for s in state.stages if s.is_placeholder])


def without_unread(args: Sequence[Argument], unread: Sequence[Tensor]) -> Sequence[Argument]:
    """Return the arguments that are tensors of the schedule, or symbols."""
    ignored = frozenset(unread)
    return [arg for arg in args if arg not in ignored] if ignored else args


def with_unread(func: PrimFunc, args: Sequence[Argument], unread: Sequence[Tensor]) -> PrimFunc:
    """Add parameters that the body ignores, at their positions among `args`."""
    if not unread:
        return func
    ignored = frozenset(unread)
    taken = {buffer.name for buffer in func.buffers}
    taken.update(node.buffer.name for node in walk(func.body) if isinstance(node, Allocate))
    used, params = iter(func.params), list[Buffer | Var]()
    for arg in args:
        if isinstance(arg, Tensor) and arg in ignored:
            params.append(Buffer(unique_name(arg.name, taken), arg.shape, arg.dtype))
            taken.add(params[-1].name)
        else:
            params.append(next(used))
    symbols = tuple(dict.fromkeys((*func.symbols, *symbols_of(unread))))
    return replace(func, params=tuple(params), symbols=symbols)


def check_outputs(schedule: Schedule, args: Sequence[Argument], name: str) -> None:
    """Refuse arguments that lack an output: a built kernel must return all outputs."""
    state = _state_of(schedule)
    check_args(state, args, name)
    _refuse_missing(state, args, name, [s for s in state.stages if s.is_output])


def _refuse_missing(
    state: State, args: Sequence[Argument], name: str, needed: Sequence[StageState]
) -> None:
    missing = [tensor for stage in needed for tensor in stage.tensors if tensor not in args]
    if missing:
        whole = [stage for stage in state.stages if stage.is_output or stage.is_placeholder]
        raise ScheduleError(
            f"lower {name}",
            f"the arguments lack {_names(missing)}",
            got=_names(args),
            expected=_names([tensor for stage in whole for tensor in stage.tensors]),
        )


def check_symbols(func: PrimFunc) -> None:
    """Refuse a symbol whose value cannot be inferred from the arguments."""
    inferred = {
        extent for buffer in func.buffers for extent in buffer.shape if isinstance(extent, Var)
    }
    given = set(func.params)
    for symbol in func.symbols:
        if symbol not in inferred and symbol not in given:
            raise ScheduleError(
                f"lower {func.name}",
                f"symbol {symbol.name} cannot be inferred from the arguments",
                because="no argument has it alone as an extent",
                hint=f"make it an argument: [{symbol.name}, …], and pass a number",
            )


def _texts(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))


def _names(tensors: Sequence[Argument]) -> str:
    return ", ".join(tensor.name for tensor in tensors)
