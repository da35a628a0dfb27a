"""Arguments of any kind get an answer, and what is legal is lowered or refused: nothing else."""

import contextlib
import random

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import UserError
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.moves.suggestions import suggestion
from dlcompiler.schedule.primitives import REGISTRY
from dlcompiler.schedule.trace import decode
from dlcompiler.schedule.verdict import Illegal
from tests.fuzz.expressions import random_expression
from tests.fuzz.threads import ThreadWalk
from tests.fuzz.walks import Walk
from tests.schedule.test_suggestions import apply_all

STRANGE = (
    None, True, 0, -1, 1, 7, 64, 2**31, 2**63, 2**70, 1.5, 2.0, float("nan"), float("inf"), "", "x",
    b"x", [], (), {}, object(), np.int64(4), np.float32(2), te.var("n"), te.const(3, "int32"),
    "threadIdx.x", "vthread", "shared", "global", "threadIdx.x=4", "threadIdx.x == 0",
    "threadIdx.x=-1 blockIdx.x=a", "lambda i: [i // 4, i % 4]", "lambda i: [i // 0]",
    "gemv_f32_8x16", "unroll", "prefetch.x", lambda *axes: axes, np.arange(2), np.array(4),
    te.const(0, "int32"), te.var("m") > 1,
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


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(30))
def test_steps(seed):
    rng = random.Random(f"hostile {seed}")
    expression = random_expression(rng)
    s = create_schedule([tensor.op for tensor in expression.outputs])
    rng.choice((Walk, ThreadWalk))(rng, s).run(rng.randint(0, 6))
    for _ in range(40):
        name, stage = rng.choice(list(REGISTRY)), rng.choice(s.state.stages).name
        args = arguments(rng, s.state, name)
        try:
            attempt = s.attempt(name, stage, args)
        except UserError:
            continue
        if isinstance(attempt.verdict, Illegal):
            found = suggestion(s, name, stage, args)
            assert found is None or apply_all(s, found)
        elif rng.random() < 0.3:
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


def test_an_array_is_no_argument(matmul):
    for value in (np.arange(2), np.array([[1]])):
        verdict = matmul.s.can("bind", matmul.i, value)
        assert verdict.reason == "thread must not be an array"
    assert matmul.s.can("split", matmul.i, np.array(4))


def test_names_of_any_type(matmul):
    with pytest.raises(UserError, match="no such primitive"):
        matmul.s.can([], matmul.i)


@pytest.mark.parametrize("threads", [None, 3])
def test_threads_that_are_none(matmul, threads, refusal):
    text = "C is no scan"
    assert refusal(matmul.s[matmul.C].env_threads, threads).startswith(f"env_threads C: {text}")
    assert matmul.s.can("env_threads", matmul.s[matmul.C], threads).reason == text


def test_a_stage_of_another_schedule_with_the_same_name(chain):
    other = create_schedule(chain.D.op)
    assert other.can("compute_inline", other[chain.Q])
    assert chain.s.can("compute_inline", chain.s.fork("f")[chain.Q])
    inner = chain.Q.op.axis[0]
    for ask in (
        lambda: chain.s.can("compute_inline", other[chain.Q]),
        lambda: chain.s.can("compute_at", chain.s[chain.P], other[chain.Q], inner),
        lambda: chain.s.suggest("double_buffer", other[chain.Q]),
        lambda: chain.s.moves(other[chain.Q]),
    ):
        with pytest.raises(UserError) as caught:
            ask()
        assert str(caught.value) == (
            "stage Q: the stage belongs to another schedule\n"
            "  hint      take it from this schedule: s[C]"
        )
