"""Random statements that store and load at any index, as hybrid scripts and as loop IR.

One text says what is computed. Python evaluates it for the right result; it is a hybrid script, or
an `ir.Builder` is given what it evaluates to. An access outside its array must end the call.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.ir import Builder, cast
from dlcompiler.te import Tensor

Array = np.ndarray[Any, Any]
DATA = ("float32", "int8", "int64", "float64", "uint16")


class Outside(Exception):
    """The right result: an index is outside its array."""


@dataclass(frozen=True)
class Store:
    """A loop that stores once in each iteration where its conditions hold."""

    count: int
    conditions: tuple[str, ...]
    """Comparisons that are joined by ``and``."""
    target: str
    adds: bool
    source: str
    kept: str = ""
    """An index that is first kept in ``w[i]``, which the conditions and the target may read."""
    changed: str = ""
    """What ``w[i]`` becomes where the conditions hold."""

    @property
    def value(self) -> str:
        return f"c[{self.target}] + a[{self.source}]" if self.adds else f"a[{self.source}]"


@dataclass(frozen=True)
class Scatter:
    """Statements that fill an array of `size` elements."""

    size: int
    loops: tuple[Store, ...]

    @property
    def script(self) -> str:
        """The text of a hybrid script, which begins with zeros."""
        lines = [f"c = output_tensor(({self.size},), a.dtype)"]
        for n, loop in enumerate(self.loops):
            lines += [f"w{n} = allocate(({loop.count},), 'int32')"] if loop.kept else []
            lines.append(f"for i in range({loop.count}):")
            lines += [f"    w{n}[i] = int32({loop.kept})"] if loop.kept else []
            indent = "    "
            if loop.conditions:
                lines.append(f"    if {' and '.join(loop.conditions)}:")
                indent = "        "
            lines += [f"{indent}w{n}[i] = int32({loop.changed})"] if loop.changed else []
            lines.append(f"{indent}c[{loop.target}] = {loop.value}")
        body = "".join(f"    {line}\n" for line in [*lines, "return c"])
        return f"def scatter(a, t0, t1):\n{body}"

    def build(self, ins: Sequence[Any], outs: Sequence[Any]) -> Any:
        """Give the statements to an `ir.Builder`."""
        ib = Builder()
        names: dict[str, Any] = dict(zip(("a", "t0", "t1"), map(ib.buffer_ptr, ins), strict=True))
        names |= {"c": ib.buffer_ptr(outs[0]), "min": te.minimum, "max": te.maximum}
        names |= {kind: _converted(kind) for kind in ("int32", "int64")}
        with ib.for_range(0, self.size) as i:
            names["c"][i] = te.const(0, outs[0].dtype)
        for n, loop in enumerate(self.loops):
            work = ib.allocate("int32", (loop.count,), name=f"w{n}") if loop.kept else None
            names[f"w{n}"] = work
            with ib.for_range(0, loop.count) as i:
                local = {**names, "i": i}
                if work is not None:
                    work[i] = eval(f"int32({loop.kept})", local)
                if loop.conditions:
                    tests = [eval(text, local) for text in loop.conditions]
                    with ib.if_scope(te.all(*tests)):
                        _store(loop, local, work)
                else:
                    _store(loop, local, work)
        return ib.get()

    def run(self, a: Array, t0: Array, t1: Array) -> Array:
        """Return the right result.

        Raises
        ------
        Outside
            If an index is outside its array.
        """
        result = np.zeros(self.size, a.dtype)
        names: dict[str, Any] = {"a": Checked(a), "t0": Checked(t0), "t1": Checked(t1)}
        names |= {"c": Checked(result), "min": min, "max": max}
        names |= {kind: np.dtype(kind).type for kind in ("int32", "int64")}
        names |= {kind: _wrapped(kind) for kind in ("int32", "int64")}
        with np.errstate(all="ignore"):
            for n, loop in enumerate(self.loops):
                work = names[f"w{n}"] = Checked(np.zeros(loop.count, np.int32))
                for i in range(loop.count):
                    local = {**names, "i": i}
                    if loop.kept:
                        work[i] = eval(f"int32({loop.kept})", local)
                    if all(eval(text, local) for text in loop.conditions):
                        _store(loop, local, work)
        return result

    def tensor(self, inputs: Sequence[Tensor], way: str) -> Tensor:
        """Return what the statements compute: of a hybrid script, or of `te.extern`."""
        if way == "extern":
            dtype = inputs[0].dtype
            made: Tensor = te.extern((self.size,), inputs, self.build, name="scatter", dtype=dtype)
            return made
        file = f"<scatter {id(self)}>"
        linecache.cache[file] = (len(self.script), None, self.script.splitlines(True), file)
        names: dict[str, Any] = {}
        exec(compile(self.script, file, "exec"), names)
        made = te.hybrid.script(names["scatter"])(*inputs)
        return made


class Checked:
    """An array that takes indices from 0 on only."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> Any:
        return self.array[self.place(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array[self.place(index)] = value

    def place(self, index: Any) -> int:
        if not 0 <= int(index) < len(self.array):
            raise Outside
        return int(index)


def _store(loop: Store, names: dict[str, Any], work: Any) -> None:
    if loop.changed:
        work[names["i"]] = eval(f"int32({loop.changed})", names)
    names["c"][eval(loop.target, names)] = eval(loop.value, names)


def _converted(kind: str) -> Callable[[Any], Any]:
    return lambda value: cast(value, kind)


def _wrapped(kind: str) -> Callable[[Any], Any]:
    return lambda value: np.asarray(value).astype(kind)[()]


# -- random ones ----------------------------------------------------------------------------------


def random_scatter(rng: random.Random, sizes: Sequence[int]) -> Scatter:
    """Return random statements on ``a``, ``t0`` and ``t1`` of these sizes."""
    size = rng.randint(1, 12)
    return Scatter(size, tuple(_loop(rng, size, sizes, n) for n in range(rng.choice((1, 1, 2)))))


def _loop(rng: random.Random, size: int, sizes: Sequence[int], number: int) -> Store:
    count = rng.randint(1, 12)
    is_kept = rng.random() < 0.35
    kept = _index(rng, sizes, rng.randint(0, 2)) if is_kept else ""
    target = f"w{number}[i]" if is_kept else _index(rng, sizes, rng.randint(0, 2))
    source = _index(rng, sizes, rng.randint(0, 1)) if rng.random() < 0.3 else f"i % {sizes[0]}"
    conditions: list[str] = []
    if rng.random() < 0.6:
        low, high = rng.choice((0, 0, 0, -1, 1)), size + rng.choice((0, 0, 0, 1, -1))
        conditions = [f"{target} >= {low}", f"{target} < {high}"]
        rng.shuffle(conditions)
    if rng.random() < 0.2:
        conditions.append(f"i % 2 == {rng.randint(0, 1)}")
    changes = (f"w{number}[i] * 2", f"w{number}[i] + 1", f"min(w{number}[i], int32({size - 1}))")
    changed = rng.choice(changes) if is_kept and rng.random() < 0.5 else ""
    return Store(count, tuple(conditions), target, rng.random() < 0.3, source, kept, changed)


def _index(rng: random.Random, sizes: Sequence[int], depth: int) -> str:
    """Return an index of integers: a loop's value, an element of a table, or arithmetic on them."""
    if depth == 0:
        if rng.random() < 0.3:
            return "int64(i)"
        table = rng.randrange(2)
        place = "i" if rng.random() < 0.2 else f"i % {sizes[1 + table]}"
        return f"int64(t{table}[{place}])"
    below = _index(rng, sizes, depth - 1)
    match rng.randrange(6):
        case 0:
            return f"({below} + int64({rng.randint(-2, 3)}))"
        case 1:
            return f"({below} * int64({rng.randint(-1, 3)}))"
        case 2:
            return f"({below} % int64({rng.randint(1, 9)}))"
        case 3:
            return f"({below} // int64({rng.randint(1, 3)}))"
        case 4:
            return f"max(min({below}, int64({rng.randint(3, 12)})), int64(0))"
    return f"int64(t1[{below}])"
