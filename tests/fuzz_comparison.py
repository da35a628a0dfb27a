"""Plant wrong elements in right results, and see whether the comparison of `verify` refuses them.

``python -m tests.fuzz_comparison --cases 2000``. Each case takes a random expression of the
schedule fuzzer, its right results by the oracle of a verification, and spoils one element at a
time: off by one, a flipped bit, NaN, an infinity, another sign, what was there before the run.
"""

from __future__ import annotations

import argparse
import collections
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import MeasurementError, ProgramError, VerificationError
from dlcompiler.measurement.equality import poison_for
from dlcompiler.measurement.oracle import Oracle, oracle_of
from dlcompiler.measurement.verification import _compare
from dlcompiler.schedule import create_schedule
from dlcompiler.te import Tensor, symbols_of
from tests.fuzz.expressions import random_expression

Array = np.ndarray[Any, Any]


def attempt(seed: int) -> collections.Counter[str]:
    """Spoil the results of the case of a seed; return how often each dtype was refused.

    Raises
    ------
    AssertionError
        A wrong result was accepted, or another place was named.
    VerificationError
        A right result was refused.
    """
    rng = random.Random(f"comparison {seed}")
    expression = random_expression(rng)
    counts: collections.Counter[str] = collections.Counter()
    if symbols_of(expression.outputs):
        return counts
    schedule = create_schedule([tensor.op for tensor in expression.outputs])
    try:
        oracle = oracle_of(schedule, seed)
    except (MeasurementError, ProgramError):  # no inputs are known for which it is defined
        return counts
    for tensor, expected in oracle.expected.items():
        with np.errstate(all="ignore"):
            right = np.asarray(expected).astype(dtypes.to_numpy(tensor.dtype))
        _compare("numpy", tensor, right.copy(), oracle)
        for place in {0, right.size - 1, rng.randrange(max(right.size, 1))} if right.size else ():
            index = tuple(int(n) for n in np.unravel_index(place, right.shape))
            for kind, bits in planted(rng, oracle, tensor, right, index):
                got = right.copy()
                got.view(_words(got))[index] = bits
                assert _is_refused(oracle, tensor, got, index), (
                    f"seed {seed}: {kind} in {tensor} at {index} is accepted: "
                    f"{got[index]} for {expected[index]}"
                )
                counts[tensor.dtype] += 1
    return counts


def planted(
    rng: random.Random, oracle: Oracle, tensor: Tensor, right: Array, index: tuple[int, ...]
) -> Iterator[tuple[str, Any]]:
    """Yield the bits of wrong values for one element, and what is wrong with each."""
    words = right.view(_words(right))
    own = words[index]
    poison = poison_for(np.asarray(oracle.expected[tensor]), right.dtype)
    one = words.dtype.type(1)
    if not dtypes.is_float(tensor.dtype):
        yield "unwritten", poison.view(words.dtype)[index]
        yield "a flipped bit", own ^ one << words.dtype.type(rng.randrange(8 * right.itemsize))
        if not dtypes.is_bool(tensor.dtype):
            with np.errstate(over="ignore"):
                yield "one more", own + one
                yield "one less", own - one
        return
    wanted = float(oracle.expected[tensor][index])
    bound = float(np.broadcast_to(oracle.bounds[tensor], right.shape)[index])
    if not np.isfinite(bound) or np.isnan(wanted):
        if np.isnan(wanted) and np.isnan(bound):
            yield "a number for NaN", np.array(1.0, right.dtype).view(words.dtype)[()]
        return
    yield "unwritten", poison.view(words.dtype)[index]
    with np.errstate(all="ignore"):
        flipped = own ^ one << words.dtype.type(rng.randrange(8 * right.itemsize))
        values = {
            "NaN": np.nan,
            "infinity": np.inf if wanted != np.inf else -np.inf,
            "the other sign": -wanted,
            "beyond the bound": wanted + 4 * bound + np.spacing(abs(right[index])) * 4,
            "a flipped bit": float(flipped.view(right.dtype)),
        }
        for kind, value in values.items():
            stored = np.array(value).astype(right.dtype)
            if not abs(float(stored) - wanted) <= bound and float(stored) != wanted:
                yield kind, stored.view(words.dtype)[()]


def _words(array: Array) -> str:
    return f"u{array.itemsize}"


def _is_refused(oracle: Oracle, tensor: Tensor, got: Array, index: tuple[int, ...]) -> bool:
    try:
        _compare("numpy", tensor, got, oracle)
    except VerificationError as error:
        return error.index == index
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    for seed in range(options.first, options.first + options.cases):
        counts += attempt(seed)
    print(f"{counts.total()} wrong results of {options.cases} cases refused: {dict(counts)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
