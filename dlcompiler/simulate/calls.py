"""Calls of external functions: their regions are checked, and their writes are recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dlcompiler import dtypes
from dlcompiler.ir import Expr, ExternCall, Region
from dlcompiler.runtime.registry import get_global_func
from dlcompiler.simulate.access import Access
from dlcompiler.simulate.expressions import Scope, compile_exprs
from dlcompiler.simulate.memory import Thunk


def extern_call(call: ExternCall, scope: Scope) -> Callable[[], None]:
    """Return a function that runs a call of a Python function; its exceptions are not caught."""
    if call.convention == "c":
        scope.site.fail(
            "extern", f"the interpreter cannot run {call.name}, a C function",
            hint="run it in a kernel, or call a Python function by call_packed",
        )  # fmt: skip
    parts = [part for arg in call.args for part in _parts(arg)]
    thunks = iter(compile_exprs(parts, scope))
    arguments = [_argument(arg, scope, thunks) for arg in call.args]
    cache = scope.cache

    def run() -> None:
        function = get_global_func(call.name)
        assert function is not None
        cache.clear()
        given = [argument() for argument in arguments]
        _run_and_note(function, given, _written_boxes(arguments, given))

    return run


class _Written:
    """A region that a call writes, with its contents before the call."""

    def __init__(self, box: _Box, array: np.ndarray[Any, Any]) -> None:
        self.box = box
        self.array = array
        self.offsets = box.offsets()
        self.before = array.copy()
        writers = box.access.memory.writers
        is_fresh = np.array([writers[offset] is None for offset in self.offsets], np.bool_)
        self.fresh = is_fresh.reshape(array.shape)
        """Mask of the elements that are unwritten before the call."""

    def prepare(self, byte: int) -> None:
        """Restore the contents from before the call, and fill unwritten elements with a byte."""
        self.array[...] = self.before
        self.array[self.fresh] = (
            np.full(1, byte, np.uint8).repeat(self.array.itemsize).view(self.array.dtype)
        )

    def untouched(self, byte: int) -> np.ndarray[Any, Any]:
        """Return the mask of the unwritten elements that still consist of the fill byte."""
        each = np.ascontiguousarray(self.array).reshape(-1).view(np.uint8)
        same = (each.reshape(-1, self.array.itemsize) == byte).all(axis=1)
        found: np.ndarray[Any, Any] = same.reshape(self.array.shape) & self.fresh
        return found


def _written_boxes(arguments: list[Thunk], given: list[Any]) -> list[_Written]:
    return [
        _Written(argument, array)
        for argument, array in zip(arguments, given, strict=True)
        if isinstance(argument, _Box) and argument.region.is_written and array.size
    ]


def _run_and_note(function: Callable[..., Any], given: list[Any], boxes: list[_Written]) -> None:
    """Call a function, and record which elements it has written.

    Unwritten elements are filled with zero bytes before the call. An element that is still zero
    may be unwritten, or the function wrote 0. So the function is called again with another fill
    byte: an element that keeps both fill bytes was not written. The first call gives the results.
    """
    for each in boxes:
        each.prepare(0)
    function(*given)
    missing = [each.untouched(0) for each in boxes]
    if any(map(np.any, missing)):
        results = [each.array.copy() for each in boxes]
        for each in boxes:
            each.prepare(0xFF)
        function(*given)
        pairs = zip(missing, boxes, strict=True)
        missing = [may_miss & each.untouched(0xFF) for may_miss, each in pairs]
        for each, result in zip(boxes, results, strict=True):
            each.array[...] = result
    for each, untouched in zip(boxes, missing, strict=True):
        is_left_out = untouched.ravel().tolist()
        written = [at for at, out in zip(each.offsets, is_left_out, strict=True) if not out]
        each.box.access.note_writes(written)


def _parts(arg: Expr) -> tuple[Expr, ...]:
    return (*arg.indices, *arg.extents) if isinstance(arg, Region) else (arg,)


def _argument(arg: Expr, scope: Scope, thunks: Any) -> Thunk:
    if isinstance(arg, Region):
        indices = tuple(next(thunks) for _ in arg.indices)
        extents = tuple(next(thunks) for _ in arg.extents)
        return _Box(arg, scope.access(arg.buffer, indices), extents)
    value, family = next(thunks), dtypes.family(arg.dtype)
    convert: Callable[[Any], Any] = {"bool": bool, "float": float}.get(family, int)
    return lambda: convert(value())


@dataclass
class _Box:
    """A region of a buffer; calling it returns the region as an array view of the memory."""

    region: Region
    access: Access
    extents: tuple[Thunk, ...]

    def __call__(self) -> np.ndarray[Any, Any]:
        memory = self.access.memory
        starts, sizes = self.starts_and_sizes()
        strides = memory.buffer.static_strides
        if 0 in sizes:
            return np.empty(sizes, memory.data.dtype)
        if self.region.is_read and memory.is_shadowed:
            self.access.note_reads(self.offsets())
        first = sum(start * stride for start, stride in zip(starts, strides, strict=True))
        steps = [stride * memory.data.itemsize for stride in strides]
        return as_strided(memory.data[first:], sizes, steps, writeable=self.region.is_written)

    def starts_and_sizes(self) -> tuple[list[int], list[int]]:
        """Return the start and the size of the region, after checking that it is in bounds."""
        starts = [int(thunk()) for thunk in self.access.indices]
        sizes = [max(int(thunk()), 0) for thunk in self.extents]
        last = [start + size - 1 for start, size in zip(starts, sizes, strict=True)]
        for corner in (starts, last) if 0 not in sizes else ():
            shape = self.access.memory.buffer.static_shape
            if not all(0 <= i < extent for i, extent in zip(corner, shape, strict=True)):
                self.access.fail_bounds(tuple(corner))
        return starts, sizes

    def offsets(self) -> list[int]:
        """Return the offset of each element."""
        strides = self.access.memory.buffer.static_strides
        offsets = np.zeros((), np.int64)
        for start, size, stride in zip(*self.starts_and_sizes(), strides, strict=True):
            offsets = np.add.outer(offsets, (start + np.arange(size)) * stride)
        found: list[int] = offsets.ravel().tolist()
        return found
