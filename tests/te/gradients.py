"""Gradients checked: by finite differences, in the interpreter and as machine code."""

import numpy as np

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.simulate import interpret

STEP = 1e-6
KINK = 1e-2
"""Relative: how much the slopes on both sides may differ by curvature and rounding."""


def values(tensor, rng, low=0.2, high=1.8):
    """Random values, away from 0 and from each other, so that no kink is near."""
    if tensor.dtype.startswith("int"):
        return rng.integers(0, 4, tensor.static_shape).astype(tensor.dtype)
    size = max(int(np.prod(tensor.static_shape)), 1)
    spread = rng.permutation(np.linspace(low, high, size))
    spread += rng.uniform(0, (high - low) / size / 2)
    return spread.reshape(tensor.static_shape).astype(tensor.dtype)


def finite_differences(output, tensor, arrays, head):
    """The derivative of ``sum(head * output)`` by each element of a placeholder, in float64.

    NaN at a kink, where the slopes on both sides differ: a maximum of equal values has none.
    """
    result = np.zeros(tensor.static_shape)
    for place in np.ndindex(*tensor.static_shape):
        ends = []
        for step in (-STEP, 0, STEP):
            moved = arrays[tensor].copy()
            moved[place] += step
            ends.append((head * te.evaluate(output, {**arrays, tensor: moved})).sum())
        left, right = np.diff(ends) / STEP
        is_kink = abs(right - left) > KINK * (1 + abs(left) + abs(right))
        result[place] = np.nan if is_kink else (left + right) / 2
    return result


def inputs_of(*outputs):
    return [op.output(0) for op in te.post_order(outputs) if isinstance(op, te.PlaceholderOp)]


def run_everywhere(outputs, arrays, rtol=1e-12):
    """Compare interpreter and machine code with `te.evaluate`, and return its results."""
    expected = te.evaluate(outputs, arrays)
    s = te.create_schedule([tensor.op for tensor in outputs])
    args = [*arrays, *outputs]
    func = dlc.lower(s, args)
    kernel = dlc.build(s, args)
    for run in (lambda given: interpret(func, given), lambda given: kernel(*given)):
        results = [np.full_like(array, np.nan) for array in expected]
        run([*arrays.values(), *results])
        for got, want in zip(results, expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)
    return expected


def check_gradient(output, inputs=None, arrays=None, *, everywhere=True, seed=0, tolerance=1e-6):
    """Compare the gradient by float64 placeholders with finite differences; return its tensors."""
    rng = np.random.default_rng(seed)
    inputs = [t for t in inputs_of(output) if t.dtype == "float64"] if inputs is None else inputs
    arrays = {t: values(t, rng) for t in inputs_of(output)} | (arrays or {})
    H = te.placeholder(output.shape, output.dtype, name="H")
    head = rng.uniform(0.5, 1.5, output.static_shape)
    found = te.gradient(output, inputs, H)
    given = {t: head if t is H else arrays[t] for t in inputs_of(*found)}
    results = run_everywhere(found, given) if everywhere else te.evaluate(found, given)
    size = np.abs(head * te.evaluate(output, arrays)).sum()  # its roundings, divided by the step
    for tensor, result in zip(inputs, results, strict=True):
        expected = finite_differences(output, tensor, arrays, head)
        result = np.where(np.isnan(expected), np.nan, result)
        np.testing.assert_allclose(result, expected, tolerance, tolerance + 1e-9 * size)
    return found
