"""Make the correctness test of a workload: random and adversarial inputs with right outputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.analysis import work_of
from dlcompiler.errors import UserError
from dlcompiler.ir import Call, Cast, Compare, walk
from dlcompiler.measurement.correctness import Case, CorrectnessTest
from dlcompiler.ops import Operator
from dlcompiler.space import Workload
from dlcompiler.te import PlaceholderOp, Tensor, evaluate, tolerance
from dlcompiler.te.tensor import ComputeOp, post_order

Array = npt.NDArray[Any]

MOST_FLOPS = 4e9
"""Work above which the second inputs are random: NumPy would need seconds for adversarial ones."""

_DECIDING = frozenset({"ceil", "floor", "fmod", "nearbyint", "round", "trunc"})
_ENOUGH_OUTPUTS = 4096
_MOST_CASES = 24


def correctness_test(operator: Operator, workload: Workload, seed: int = 0) -> CorrectnessTest:
    """Return the inputs for checking candidates, with the limits of each output element.

    The first case has the operator's own random inputs. The second one is adversarial. Its first
    tensor is negative throughout: a maximum that begins at zero is wrong. The other tensors
    alternate in sign, so that sums cancel. No float is near zero: a missing term changes the sum.
    Where there are few outputs, more random cases follow: one element of an input changes a maximum
    only by chance.
    """
    args = operator.define(workload)
    outputs = [tensor for tensor in args if not isinstance(tensor.op, PlaceholderOp)]
    kinds = {tensor.name: tensor.dtype for tensor in outputs}
    elements = sum(math.prod(tensor.static_shape) for tensor in outputs)
    count = min(max(2, -(-_ENOUGH_OUTPUTS // max(elements, 1))), _MOST_CASES)
    seeds = range(_MOST_CASES * seed, _MOST_CASES * seed + count)
    references = [operator.reference(workload, number) for number in seeds]
    cases = [Case.of(made.inputs, made.expected, made.bound, kinds) for made in references]
    adversarial = _adversarial_case(args, outputs, references[1].inputs, kinds)
    if adversarial is not None:
        cases[1] = adversarial
    return CorrectnessTest(cases)


def _adversarial_case(
    args: tuple[Tensor, ...],
    outputs: list[Tensor],
    likes: Mapping[str, Array],
    kinds: Mapping[str, str],
) -> Case | None:
    """Return the adversarial case; None if its right outputs cannot be computed."""
    work = work_of(outputs)
    if work is None or work.flops > MOST_FLOPS or not _is_continuous(outputs):
        return None
    inputs = [tensor for tensor in args if isinstance(tensor.op, PlaceholderOp)]
    arrays = {
        tensor: adversarial_array(tensor, number, likes[tensor.name])
        for number, tensor in enumerate(inputs)
    }
    try:
        expected = {t.name: evaluate(t, arrays, accumulate="float64") for t in outputs}
        bound = {t.name: tolerance(t, arrays) for t in outputs}
    except UserError:  # the expression is not defined on such values
        return None
    if not all(np.isfinite(array).all() for array in (*expected.values(), *bound.values())):
        return None
    return Case.of({tensor.name: array for tensor, array in arrays.items()}, expected, bound, kinds)


def adversarial_array(tensor: Tensor, number: int, like: Array) -> Array:
    """Return values with adversarial signs: between 1/2 and 2, or in the range of `like`.

    Parameters
    ----------
    tensor : Tensor
        Shape and dtype.
    number : int
        Position among the inputs. Input 0 is negative throughout; the others alternate in sign.
    like : ndarray
        Random values for the tensor.
    """
    if dtypes.is_bool(tensor.dtype) or like.size == 0:
        return like
    if dtypes.is_float(tensor.dtype):
        generator = np.random.default_rng(number)
        values = np.exp2(generator.uniform(-1, 1, tensor.static_shape))
        made: Array = values.astype(like.dtype)
    else:
        made = np.maximum(np.abs(like.clip(-127, 127)), 1).astype(like.dtype)
    if dtypes.is_unsigned(tensor.dtype):
        return made
    is_negative = np.arange(made.size).reshape(made.shape) % 2 == 0
    return np.where(is_negative | (number == 0), -made, made)


def _is_continuous(outputs: list[Tensor]) -> bool:
    """Tell whether no float is compared, rounded to an integer or cast to one.

    Otherwise a rounding error may change a result by more than the tolerance.
    """
    for op in post_order(outputs):
        if not isinstance(op, ComputeOp):
            continue
        for node in walk(op.body):
            match node:
                case Compare(_, a, _) if dtypes.is_float(a.dtype):
                    return False
                case Call() if node.name in _DECIDING:
                    return False
                case Cast(value, dtype) if dtypes.is_float(value.dtype):
                    if not dtypes.is_float(dtype):
                        return False
    return True
