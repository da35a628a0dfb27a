"""Arguments of any kind get an answer, and what is legal is lowered or refused: nothing else."""

import contextlib
import random

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import UserError
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.primitives import REGISTRY
from dlcompiler.schedule.trace import decode
from dlcompiler.schedule.verdict import Illegal
from tests.fuzz.expressions import random_expression
from tests.fuzz.threads import ThreadWalk
from tests.fuzz.walks import Walk

STRANGE = (
    None, True, 0, -1, 1, 7, 64, 2**31, 2**63, 2**70, 1.5, 2.0, float("nan"), float("inf"), "", "x",
    b"x", [], (), {}, object(), np.int64(4), np.float32(2), te.var("n"), te.const(3, "int32"),
    "threadIdx.x", "vthread", "shared", "global", "threadIdx.x=4", "threadIdx.x == 0",
    "threadIdx.x=-1 blockIdx.x=a", "lambda i: [i // 4, i % 4]", "lambda i: [i // 0]",
    "gemv_f32_8x16", "unroll", "prefetch.x", lambda *axes: axes,
)  # fmt: skip
TEXTS = (
    "shared", "local", "global", "warp", "threadIdx.x", "vthread", "blockIdx.x", "unroll",
    "auto_unroll_max_step", "threadIdx.x == 0", "threadIdx.x=4",
)  # fmt: skip


def arguments(rng, state, name):
    """Return random arguments of a primitive, most of them of the right kind."""
    axes = [axis for stage in state.stages for axis in stage.paths]
    names = [stage.name for stage in state.stages]
    some = {
        "axis": axes,
        "parent_axis": axes,
        "axes": [tuple(rng.sample(axes, min(len(axes), rng.randint(0, 3))))],
        "stage": names,
        "stages": [tuple(rng.sample(names, min(len(names), rng.randint(0, 2))))],
        "int": (1, 2, 3, 4, 5, 8, 64),
        "text": TEXTS,
        "index_map": ("lambda i: [i // 4, i % 4]", "lambda i, j: [j, i]"),
        "intrin": ("gemv_f32_8x16",),
    }
    kinds = REGISTRY[name].parameters.items()
    return {
        parameter: rng.choice(some[kind] if some[kind] and rng.random() < 0.8 else STRANGE)
        for parameter, kind in kinds
        if rng.random() < 0.85
    }


@pytest.mark.parametrize("seed", range(30))
def test_steps(seed):
    rng = random.Random(f"hostile {seed}")
    expression = random_expression(rng)
    s = create_schedule([tensor.op for tensor in expression.outputs])
    rng.choice((Walk, ThreadWalk))(rng, s).run(rng.randint(0, 6))
    for _ in range(40):
        name, stage = rng.choice(list(REGISTRY)), rng.choice(s.state.stages).name
        try:
            attempt = s.attempt(name, stage, arguments(rng, s.state, name))
        except UserError:
            continue
        if not isinstance(attempt.verdict, Illegal) and rng.random() < 0.3:
            s.apply(name, stage, decode(s.state, attempt.step))
    for target in ("cpu", "gpu", "c"):
        with contextlib.suppress(UserError):
            lower(s, expression.args, target=target)


def test_a_pragma_that_is_no_text(matmul, refusal):
    text = refusal(matmul.s[matmul.C].pragma, matmul.i, ["unroll"])
    assert text.startswith("pragma C.i: no such pragma\n  got       ['unroll']\n")


def test_include_inputs_is_a_choice(chain, refusal):
    args = {"outputs": ("Q",), "inputs": ("A",), "include_inputs": "all"}
    assert refusal(chain.s.apply, "create_group", "Q", args) == (
        "create_group Q: include_inputs must be 0 or 1\n  got       'all'"
    )
