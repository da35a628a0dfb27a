"""Models in files: written without pickle, and checked before anything in them is used.

A file holds one line with a SHA-256 digest of all that follows, one line with the length of a JSON
text, this text, and the bytes of the weights one after another. The text has the LLVM code of the
kernels, which is compiled when the file is loaded, so a file that others may write is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import DLCompilerError, UserError
from dlcompiler.graph.execution.stepping import KernelCode
from dlcompiler.graph.execution.steps import Place, Step, Steps
from dlcompiler.graph.ir import tensor_types
from dlcompiler.graph.memory import MemoryPlan
from dlcompiler.graph.memory.blocks import PART_ALIGNMENT
from dlcompiler.graph.memory.plan import Placement
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.text.document import known_type, type_row
from dlcompiler.json_text import JsonError, parse
from dlcompiler.measurement.aligned import aligned_copy
from dlcompiler.output_files import write_file
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.libraries import (
    DEEPEST_FORMULA,
    checked_description,
    compiled,
    damaged,
    describe,
)
from dlcompiler.runtime.trust import read_trusted

MAGIC = b"#dlcompiler model "
VERSION = 1
MOST_BYTES = 2**62
"""Largest arena; [byte]."""
_KINDS = {"str": str, "int": int, "bool": bool}
T = TypeVar("T")


def save_model(steps: Steps, codes: Sequence[KernelCode], path: Path) -> Path:
    """Write a model to a file, and return its path.

    Parameters
    ----------
    steps : Steps
        The model.
    codes : sequence of KernelCode
        Its kernels.
    path : Path
        The file.

    Raises
    ------
    UserError
        It cannot be written.
    """
    inside = [array for code in codes for array in code.weights]
    text = json.dumps({
        "version": VERSION,
        "params": [asdict(param) for param in steps.params],
        "result": type_row(steps.result),
        "plan": {**asdict(steps.plan), "decisions": []},
        "steps": [asdict(step) for step in steps.steps],
        "kernels": [
            {"code": describe(code.function), "weights": [_row(array) for array in code.weights]}
            for code in codes
        ],
        "weights": [_row(array) for array in steps.weights],
    }).encode()  # fmt: skip
    arrays = [np.ascontiguousarray(array).tobytes() for array in (*steps.weights, *inside)]
    body = b"%d\n%b%b" % (len(text), text, b"".join(arrays))
    write_file(path, b"%b%d %b\n%b" % (MAGIC, VERSION, _digest(body), body))
    return path


def load_steps(path: Path) -> tuple[Steps, list[KernelCode]]:
    """Read what `save_model` wrote, and compile the kernels for this machine.

    Raises
    ------
    UserError
        Others may write the file, it is damaged, or it is not of this project.
    TargetError
        This machine cannot run its code.
    """
    data, arrays = _parts(path)
    try:
        steps, weights = _steps(data), _Weights(arrays)
        steps.weights += [weights.next(row) for row in data["weights"]]
        codes = [
            KernelCode(
                compiled(checked_description(row["code"], path), path),
                tuple(weights.next(each) for each in row["weights"]),
            )
            for row in data["kernels"]
        ]
        weights.check_end()
        _check(steps, codes)
    except UserError:
        raise
    except (
        AttributeError, DLCompilerError, IndexError, KeyError, OverflowError, TypeError, ValueError
    ) as error:  # fmt: skip
        raise damaged(path, f"{type(error).__name__}: {error}") from error
    return steps, codes


def _row(array: Array) -> list[Any]:
    return [dtypes.from_numpy(array.dtype), list(array.shape)]


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


def _parts(path: Path) -> tuple[Any, bytes]:
    """Return the parsed text of a file and the bytes behind it, after a check of the digest."""
    data = read_trusted(path)
    if not data.startswith(MAGIC):
        raise UserError(
            f"load {path}", "not a model of dlcompiler", expected="a file of model.save(path)"
        )
    head, _, body = data.partition(b"\n")
    version, _, digest = head.removeprefix(MAGIC).partition(b" ")
    if digest != _digest(body):
        raise damaged(path, "its checksum differs")
    if version != b"%d" % VERSION:
        raise UserError(
            f"load {path}", "written by another version", got=version.decode("ascii", "replace"),
            expected=VERSION,
        )  # fmt: skip
    length, _, rest = body.partition(b"\n")
    if not length.isdigit() or int(length) > len(rest):
        raise damaged(path, "the length of its text is wrong")
    try:
        return parse(rest[: int(length)], deepest=DEEPEST_FORMULA), rest[int(length) :]
    except JsonError as error:
        raise damaged(path, str(error)) from error


class _Weights:
    """Takes arrays from the end of a file, one after another."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def next(self, row: Any) -> Array:
        name, extents = row
        shape = _tuple(extents, int)
        dtype = dtypes.to_numpy(name)
        size = math.prod(shape) * dtype.itemsize
        if any(extent < 0 for extent in shape) or self.at + size > len(self.data):
            raise ValueError(f"a weight is longer than the file: {row}")
        array = np.frombuffer(self.data[self.at : self.at + size], dtype).reshape(shape)
        self.at += size
        return aligned_copy(array)

    def check_end(self) -> None:
        if self.at != len(self.data):
            raise ValueError("there are bytes behind the weights")


def _steps(data: Mapping[str, Any]) -> Steps:
    if data["version"] != VERSION:
        raise ValueError("its text is of another version")
    plan = data["plan"]
    made = _made(
        MemoryPlan, plan, kernels=_tuple(plan["kernels"], str),
        placements=tuple(_made(Placement, row) for row in plan["placements"]),
        live=_tuple(plan["live"], int), decisions=(),
    )  # fmt: skip
    params = tuple(_made(Param, row, shape=_tuple(row["shape"], int)) for row in data["params"])
    steps = Steps(params, known_type(data["result"]), {"": made})
    for row in data["steps"]:
        places = tuple(_made(Place, place) for place in row["places"])
        steps.steps.append(_made(Step, row, places=places, values=_tuple(row["values"], str)))
    return steps


def _made(kind: Callable[..., T], row: Mapping[str, Any], **parts: Any) -> T:
    """Return a dataclass of the fields in a row, of which some were made before."""
    values = {**row, **parts}
    for each in fields(kind):  # type: ignore[arg-type]  # a dataclass
        wanted = _KINDS.get(str(each.type))
        if wanted is not None and type(values[each.name]) is not wanted:
            raise ValueError(f"{each.name} is no {each.type}: {values[each.name]!r:.80}")
    return kind(**values)


def _tuple(row: Any, kind: type[T]) -> tuple[T, ...]:
    if type(row) is not list or any(type(item) is not kind for item in row):
        raise ValueError(f"no list of {kind.__name__}: {row!r:.80}")
    return tuple(row)


def _check(steps: Steps, codes: Sequence[KernelCode]) -> None:
    """Refuse steps whose operands are not what their kernels take."""
    results = [(kind.shape, kind.dtype) for kind in tensor_types(steps.result)]
    if results != [(param.shape, param.dtype) for param in steps.outputs]:
        raise ValueError("the result has other parts than the outputs")
    if (*steps.inputs, *steps.outputs) != steps.params:
        raise ValueError("an output stands before an input")
    if not 0 <= steps.plan.bytes <= MOST_BYTES:
        raise ValueError(f"an arena of {steps.plan.bytes} bytes")
    sizes = {
        "input": [_bytes(param) for param in steps.inputs],
        "output": [_bytes(param) for param in steps.outputs],
        "weight": [array.nbytes for array in steps.weights],
    }
    for step in steps.steps:
        code = codes[step.kernel]
        inside = len(code.weights)
        params = list(code.function.params)
        inputs = len(step.places) - step.outputs
        taken = [*params[:inputs], *params[inputs + inside :]]
        if step.kernel < 0 or step.outputs < 1 or inputs < 0 or len(taken) != len(step.places):
            raise ValueError(f"step {step.name} has another number of operands than its kernel")
        for number, (param, place) in enumerate(zip(taken, step.places, strict=True)):
            is_written = number >= inputs
            if (
                param.is_output != is_written
                or (is_written and place.kind not in ("arena", "output"))
                or place.bytes != _bytes(param)
                or not _is_inside(place, sizes, steps.plan.bytes)
            ):
                raise ValueError(f"an operand of step {step.name} does not fit: {place}")


def _is_inside(place: Place, sizes: Mapping[str, Sequence[int]], arena: int) -> bool:
    if place.kind == "arena":
        is_aligned = place.number % PART_ALIGNMENT == 0
        return is_aligned and place.number >= 0 and place.number + place.bytes <= arena
    known = sizes[place.kind]
    return 0 <= place.number < len(known) and known[place.number] == place.bytes


def _bytes(param: Param) -> int:
    if not param.is_static or param.is_number or any(extent < 0 for extent in param.static_shape):
        raise ValueError(f"no array of known size: {param}")
    return param.nbytes
