"""Every operator × layout × dtype × shape against its NumPy reference.

A module of tests says what there is to choose, and what a choice means::

    PARAMETERS = {"dtype": ("float32", "float64"), "m": (0, 1, 7, 64), …}

    @pytest.mark.campaign
    @pytest.mark.parametrize("choice", choices(PARAMETERS), ids=str)
    def test_products(choice):
        check(OPERATOR, OPERATOR.workload(**choice))

`choices` gives a set in which each pair of values occurs; with ``--full`` (`make test-full`), all.
"""

import functools
import itertools
import os
import random

import numpy as np

from dlcompiler import dtypes, ops
from dlcompiler.measurement.equality import differences
from dlcompiler.pipeline import build
from dlcompiler.target import resolve
from dlcompiler.te import PlaceholderOp
from tests.guard_pages import guarded_array


class Choice(dict):
    """Values by name; its text names a test."""

    def __str__(self):
        return ",".join(f"{name}={value}" for name, value in self.items())


def choices(parameters, allowed=lambda choice: True):
    """Return choices of one value for each parameter: all with ``--full``, else all pairs."""
    everything = [
        choice
        for values in itertools.product(*parameters.values())
        if allowed(choice := Choice(zip(parameters, values, strict=True)))
    ]
    return everything if os.environ.get("DLCOMPILER_TEST_FULL") else _covering(everything)


def _covering(everything):
    """Return few choices in which each pair of values of `everything` occurs."""
    order = random.Random(7)
    bits = {pair: 1 << n for n, pair in enumerate(_pairs_of_all(everything))}

    @functools.cache  # of the few that are looked at: of all, it would take seconds
    def pairs(number):
        """Return the pairs of a choice as the bits of a number, which are counted quickly."""
        return sum(bits[pair] for pair in itertools.combinations(everything[number].items(), 2))

    missing = sum(bits.values())
    found = []
    while missing:
        some = order.sample(range(len(everything)), min(len(everything), 200))
        best = max(some, key=lambda number: (pairs(number) & missing).bit_count())
        if not pairs(best) & missing:
            wanted = bits[min((pair for pair in bits if bits[pair] & missing), key=str)]
            best = next(number for number in range(len(everything)) if wanted & pairs(number))
        missing &= ~pairs(best)
        found.append(everything[best])
    return found


def _pairs_of_all(everything):
    """Return each pair of values that occurs, as ``((name, value), (name, value))``."""
    names = list(everything[0]) if everything else []
    columns = {name: [choice[name] for choice in everything] for name in names}
    return {
        ((a, value), (b, other))
        for a, b in itertools.combinations(names, 2)
        for value, other in set(zip(columns[a], columns[b], strict=True))
    }


def check(operator, workload, cfg=None, *, target="cpu", seed=1, inputs=None):
    """Build an operator and compare its outputs, poisoned before, with its reference.

    All arrays lie between pages that nothing may touch: at the end of theirs, then at the start.
    `inputs` replaces some of the reference's; then its results are returned, not compared.
    """
    machine = resolve(target)
    cfg = ops.config_for(operator, workload, machine) if cfg is None else cfg
    schedule, args = operator.template(workload, machine, cfg)
    kernel = build(schedule, args, machine, name=f"{workload.op}_kernel")
    reference = operator.reference(workload, seed)
    given = {**reference.inputs, **(inputs or {})}
    for at_end in (True, False):
        arrays = [_placed(arg, given, at_end) for arg in args]
        kernel(*arrays)
        outputs = {arg.name: a for arg, a in zip(args, arrays, strict=True) if _is_output(arg)}
        if inputs is None:
            _compare(outputs, reference, f"{workload} {cfg}")
    return outputs


def _is_output(tensor):
    return not isinstance(tensor.op, PlaceholderOp)


def _placed(tensor, given, at_end):
    array = guarded_array(tensor.static_shape, dtypes.to_numpy(tensor.dtype), at_end=at_end)
    array[...] = _poison(array.dtype) if _is_output(tensor) else given[tensor.name]
    return array


def _poison(dtype):
    return 77 if dtype.kind in "iub" else np.nan


def _compare(outputs, reference, what):
    assert set(outputs) == set(reference.expected), what
    for name, expected in reference.expected.items():
        assert outputs[name].shape == expected.shape, what
        # The poison is NaN, or no right integer, so that an element left unwritten is found.
        first = differences(outputs[name], expected, reference.bound[name]).first
        assert first is None, f"{what}: {name} at {first}"
