"""What goes wrong in a program that the schedule refused to make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dlcompiler.analysis import analyze_races
from dlcompiler.errors import DLCompilerError, InternalError
from dlcompiler.ir import Allocate, PrimFunc, rewrite, verify_func
from dlcompiler.ir.rewrite import Node
from dlcompiler.lowering import build_nests
from dlcompiler.pipeline import passes_of
from dlcompiler.schedule.state import State
from dlcompiler.simulate import interpret
from dlcompiler.target import resolve
from dlcompiler.te import Tensor
from tests.fuzz.checks import MAX_STEPS, Case, Oracle, Wrong

DATA = range(1, 61)
"""Seeds of the inputs that are tried."""


def evidence(case: Case, state: State) -> str:
    """Say what is wrong with the program of a state; nothing if all is well.

    A race, a read of what nothing wrote, an access out of bounds, a wrong value, a read of memory
    that is *gone* (its loop is over), or *no program*: lowering cannot express it.
    """
    results = [t for t in case.expression.outputs if t not in case.expression.inputs]
    try:
        func = build_nests(state, [*case.expression.inputs, *results], "forced")
    except Exception as error:  # lowering relies on what was refused
        return f"no program: {type(error).__name__}: {_first_line(error)}"
    try:
        verify_func(func)
    except InternalError as error:
        lasting = with_lasting_buffers(func)
        try:
            verify_func(lasting)
        except InternalError:
            return f"no program: {_first_line(error)}"
        return _of_program(case, lasting, results) or f"memory that is gone: {_first_line(error)}"
    return _of_program(case, func, results)


def _of_program(case: Case, func: PrimFunc, results: Sequence[Tensor]) -> str:
    for seed in DATA:
        if found := _of_run(replace(case, seed=seed), func, results):
            return found
    for verdict in analyze_races(func).violations:
        return f"race: {verdict.reason}"
    try:
        for item in passes_of(resolve("cpu")):
            func = item.run(func)
    except DLCompilerError as error:
        return f"no program: {_first_line(error)}"
    return _of_run(case, func, results)


def _of_run(case: Case, func: PrimFunc, results: Sequence[Tensor]) -> str:
    oracle = Oracle(case, results)
    arrays = oracle.poisoned()
    try:
        interpret(func, [*oracle.arrays.values(), *arrays], max_steps=MAX_STEPS)
        oracle.compare("forced", arrays, "")
    except Wrong as error:
        return f"wrong value: {_first_line(error)}"
    except DLCompilerError as error:
        kind = str(getattr(error, "kind", "error")).replace("_", " ")
        return "" if kind == "step budget" else f"{kind}: {_first_line(error)}"
    return ""


def with_lasting_buffers(func: PrimFunc) -> PrimFunc:
    """Return the function with every buffer allocated at its outermost level.

    A stage that is read outside the loop where it is computed is then read from memory that holds
    what the last iteration left: the mistake that the refusal speaks of.
    """
    moved: list[Allocate] = []

    def rule(node: Node) -> Node:
        if not isinstance(node, Allocate):
            return node
        moved.append(node)
        return node.body

    body = rewrite(func.body, rule)
    for item in moved:
        body = replace(item, body=body)
    return func.with_body(body)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
