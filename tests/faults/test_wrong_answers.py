"""Fast kernels with wrong results: none of a thousand random ones is accepted.

Costs about 40 s on an idle machine: each is generated, compiled, and run twice.
"""

import random
import time
from collections import Counter

import pytest

from dlcompiler import ops
from dlcompiler.autotune.pools.correctness import correctness_test
from dlcompiler.codegen import emit
from dlcompiler.errors import DLCompilerError
from dlcompiler.ir import walk
from dlcompiler.measurement.candidates import Builder, Built, Candidate, Runner
from dlcompiler.measurement.correctness import Case, CorrectnessTest
from dlcompiler.pipeline import lower
from dlcompiler.runtime.options import Options
from dlcompiler.runtime.sampling import Effort
from dlcompiler.runtime.workers import Worker
from dlcompiler.target import resolve
from tests.faults.mutations import mutant

CPU = resolve("cpu")
OPTIONS = Options.for_target(CPU, opt_level=0)
SEED = 20261121
EACH, PARTS = 50, 4
MOST_NODES = 260
WORKS = {
    "matmul": {"m": 6, "n": 5, "k": 7},
    "matmul int8": {"m": 5, "n": 6, "k": 4, "dtype": "int8"},
    "conv2d_direct": {"n": 1, "c": 3, "h": 5, "w": 4, "o": 4, "kernel": 3, "padding": 1},
    "pool2d": {"kind": "max", "n": 1, "c": 2, "h": 7, "w": 6, "kernel": 3, "stride": 2},
    "softmax": {"shape": (3, 11)},
}
ALONE = {"effort": Effort(least=1, most=1), "threads": 1}
"""One call on one thread: a race is wrong only now and then, and then whoever looks decides."""


def programs(operator, workload, generator, count=6):
    """Return lowered schedules of some configs, without long programs."""
    space = operator.space(workload, CPU)
    allowed = list(space.allowed())
    found = []
    for point in generator.sample(allowed, min(80, len(allowed))):
        schedule, args = operator.template(workload, CPU, space.at(point))
        # Unchecked, in four fifths of the time: mutations make them wrong anyway.
        func = lower(schedule, args, name="kernel", verify_passes=False, check_races=False)
        if sum(1 for _ in walk(func.body)) < MOST_NODES:
            found.append(func)
        if len(found) == count:
            break
    assert found
    return found


def mutants(operator, workload, generator):
    """Yield candidates that may be wrong, with what was changed and the program."""
    funcs = programs(operator, workload, generator)
    while True:
        try:
            func, what = mutant(generator.choice(funcs), generator)
            yield Candidate(emit(func, CPU)), what, func
        except (DLCompilerError, TypeError, OverflowError):
            continue  # not a program any more


def independent_test(operator, workload):
    """Return inputs on which no candidate was tried, as an independent check of wrong results."""
    kinds = {t.name: t.dtype for t in operator.define(workload)}
    references = [operator.reference(workload, seed) for seed in range(1000, 1040)]
    return CorrectnessTest([Case.of(r.inputs, r.expected, r.bound, kinds) for r in references])


@pytest.fixture(scope="module")
def workers():
    with Worker() as first, Worker() as second, Worker() as third:
        yield first, second, third


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", WORKS)
def test_none_of_many_wrong_programs_is_accepted(name, part, workers):
    operator = ops.operator(name.split()[0])
    workload = operator.workload(**WORKS[name])
    generator = random.Random(f"{SEED} {name} {part}")
    builder = Builder(workers[0], OPTIONS, 20.0)
    opinion = Runner(workers[1], independent_test(operator, workload), OPTIONS, 2.0, **ALONE)
    judge = Runner(workers[2], correctness_test(operator, workload), OPTIONS, 2.0, **ALONE)
    start = time.perf_counter()
    outcomes, tried, accepted = Counter(), 0, []
    for candidate, what, func in mutants(operator, workload, generator):
        tried += 1
        built = builder.build(candidate)
        if not isinstance(built, Built) or opinion.run(built).outcome != "wrong answer":
            continue
        outcome = judge.run(built).outcome
        outcomes[outcome] += 1
        if outcome == "ok":
            accepted.append(f"{what}\n{func}")
        if outcomes.total() == EACH:
            break
    print(
        f"\n  {EACH} wrong of {tried} changed {name}, part {part}: {dict(outcomes)}"
        f" (seed {SEED}, {time.perf_counter() - start:.1f} s)", end="",
    )  # fmt: skip
    assert not accepted, "\n".join(accepted)
