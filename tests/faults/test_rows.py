"""Kernels with every kind of fault (bad LLVM text, crashes, wrong results) among good ones.

Costs about 7 s, most of it the two limits that are waited for.
"""

from dataclasses import replace

import pytest

from dlcompiler import ops
from dlcompiler.autotune import LocalPool, tune
from dlcompiler.autotune.pools import local
from dlcompiler.measurement.candidates import Ceiling
from dlcompiler.pipeline import emit_source
from dlcompiler.runtime.sampling import Effort
from dlcompiler.runtime.source import Text
from dlcompiler.target import resolve
from tests.faults.candidates import DECLARED, FOREVER

pytestmark = pytest.mark.campaign(whole_file=True)

WORKLOAD = ops.operator("matmul").workload(m=8, n=8, k=8)
CPU = resolve("cpu")
LIMIT_S = 3.0

ROWS = {
    "a syntax error": ("nonsense", "build error", "not valid"),
    "a type error": ("  ret i32 0", "build error", "not valid"),
    "a symbol that nobody defines": (
        "  call void @nobody()\n  ret void\n}\ndeclare void @nobody()\n"
        "define void @f() {\n  ret void",
        "build error", "nobody",
    ),
    "an unknown intrinsic": (
        "  call void @llvm.no.such()\n  ret void\n}\ndeclare void @llvm.no.such()\n"
        "define void @f() {\n  ret void",
        "build error", "llvm.no.such",
    ),
    "an intrinsic of another processor": (
        "  call void @llvm.x86.avx512.no()\n  ret void\n}\ndeclare void @llvm.x86.avx512.no()\n"
        "define void @f() {\n  ret void",
        "build error", "llvm.x86.avx512.no",
    ),
    "a copy that needs a library": (  # which no machine has, as it may have one for bfloat
        "  call void @llvm.memcpy.element.unordered.atomic.p0.p0.i64(ptr align 4 %C, "
        "ptr align 4 %A, i64 64, i32 4)\n  ret void\n}\n"
        "declare void @llvm.memcpy.element.unordered.atomic.p0.p0.i64(ptr, ptr, i64, i32)\n"
        "define void @f() {\n  ret void",
        "build error", "link machine code",
    ),
    "wrong assembly": (
        '  call void asm sideeffect "no such instruction", ""()\n  ret void',
        "crashed", "while it was compiled: ",
    ),
    "a vector that LLVM refuses": (
        "  %x = load <1048576 x float>, ptr %A, align 4\n"
        "  %y = fadd <1048576 x float> %x, %x\n"
        "  store <1048576 x float> %y, ptr %C\n  ret void",
        "crashed", "while it was compiled: ended by SIGABRT",
    ),
    "a hang in the compiler": (
        "  %x = load <131072 x float>, ptr %A, align 4\n  %y = fadd <131072 x float> %x, %x\n"
        "  store <131072 x float> %y, ptr %C\n  ret void",
        "build timeout", f"not compiled within {LIMIT_S:g} s",
    ),
    "a hang of the kernel": (
        FOREVER, "run timeout", f"not checked and timed within {LIMIT_S:g} s",
    ),
    "no code": ("  unreachable", "build error", "the code is empty"),
    "a frame larger than the stack": (
        "  %x = alloca [268435456 x i8]\n  %n = load volatile i32, ptr @zero\n"
        "  %p = getelementptr i8, ptr %x, i32 %n\n  store volatile i8 1, ptr %p\n  ret void",
        "crashed", "ended by SIGSEGV",
    ),
    "recursion without end": (
        "  call void @matmul_kernel(ptr %A, ptr %B, ptr %C)\n  store volatile i8 1, ptr %C\n"
        "  ret void",
        "crashed", "ended by SIGSEGV",
    ),
    "a bad address": (
        "  store volatile i32 1, ptr inttoptr (i64 16 to ptr)\n  ret void",
        "crashed", "ended by SIGSEGV",
    ),
    "an aligned load of what is not": (
        "  %p = getelementptr i8, ptr %A, i64 4\n"
        "  %x = load volatile <4 x float>, ptr %p, align 16\n"
        "  store <4 x float> %x, ptr %C, align 4\n  ret void",
        "crashed", "ended by SIGSEGV",
    ),
    "a write to an input": (
        "  store volatile float 0.0, ptr %A\n  ret void", "crashed", "ended by SIGSEGV",
    ),
    "a division by zero": (
        "  %x = load volatile i32, ptr @zero\n  %y = sdiv i32 7, %x\n"
        "  store volatile i32 %y, ptr %C\n  ret void",
        "crashed", "ended by SIGFPE",
    ),
    "the least number divided by -1": (
        "  %x = load volatile i32, ptr @least\n  %n = load volatile i32, ptr @minus\n"
        "  %y = sdiv i32 %x, %n\n  store volatile i32 %y, ptr %C\n  ret void",
        "crashed", "ended by SIGFPE",
    ),
    "a trap": ("  call void @llvm.trap()\n  ret void", "crashed", "ended by SIG"),
    "free of what was not allocated": (
        "  call void @free(ptr %C)\n  ret void", "crashed", "ended by SIG",
    ),
    "64 GiB that it does not ask whether it got": (
        "  %p = call ptr @malloc(i64 68719476736)\n  store volatile i8 1, ptr %p\n  ret void",
        "crashed", "ended by SIGSEGV",
    ),
    "a write far outside": (
        "  %p = getelementptr i8, ptr %C, i64 65535\n  store volatile i8 1, ptr %p\n  ret void",
        "crashed", "ended by SIGSEGV",
    ),
    "nothing": ("  ret void", "wrong answer", "C[0, 0] is nan"),
}  # fmt: skip
GOOD = 50


def text_of(body):
    return f"define void @matmul_kernel(ptr %A, ptr %B, ptr %C) {{\n{body}\n}}\n{DECLARED}"


@pytest.fixture
def faulty(monkeypatch):
    """Let some configs of the space have bad kernels; return them by their number."""
    space = ops.operator("matmul").space(WORKLOAD, CPU)
    allowed = list(space.allowed())
    step = len(allowed) // (GOOD + len(ROWS))
    default = ops.operator("matmul").default_config(WORKLOAD, CPU)
    configs = [c for c in map(space.at, allowed[::step]) if c != default][: GOOD + len(ROWS) - 1]
    bad = dict(zip(configs[1::2], ROWS, strict=False))
    current = []

    def candidate(self, config):
        current[:] = [config]
        return local.candidate_of(self._operator, self._workload, self._target, config)

    def emit(schedule, args, target, name, **options):
        source, func = emit_source(schedule, args, target, name, **options)
        row = bad.get(current[0])
        if row is not None:
            source = replace(source, texts={"llvm": Text(text_of(ROWS[row][0]))})
        return source, func

    monkeypatch.setattr(LocalPool, "_candidate", candidate)
    monkeypatch.setattr(local, "emit_source", emit)
    return configs, bad


def test_good_candidates_are_measured_among_bad_ones(faulty):
    configs, bad = faulty
    pool = LocalPool(
        ops.operator("matmul"), WORKLOAD, CPU, threads=1, overlap=True,
        ceiling=Ceiling(build_s=LIMIT_S, run_s=LIMIT_S), effort=Effort(budget_s=0.01),
    )  # fmt: skip
    run = tune(
        WORKLOAD, threads=1, trials=len(configs) + 1, tuner="random", pool=pool,
        first=configs, block=True,
    )  # fmt: skip
    by_config = {trial.config: trial for trial in run.trials}
    for config, row in bad.items():
        _, outcome, message = ROWS[row]
        trial = by_config[config]
        spent = trial.result.build_s + trial.result.run_s
        print(f"\n  {row}: {trial.outcome} after {spent:.2f} s", end="")
        assert trial.outcome == outcome, (row, trial.result.message)
        assert message in trial.result.message, row
        assert not trial.result.samples_s
    good = [trial for trial in run.trials if trial.config not in bad]
    assert len(good) == GOOD
    assert {trial.outcome for trial in good} == {"ok"}
    records = list(run.store.records(WORKLOAD))
    assert len(records) == len(run.trials), "each is recorded with its config"
    assert run.best.config not in bad
