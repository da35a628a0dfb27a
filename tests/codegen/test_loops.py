"""The source of a simulator: its text, and the line of the whole program that each line is."""

from textwrap import dedent

import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.codegen import emit
from dlcompiler.passes.split_host_device import split_host_device
from dlcompiler.pipeline import emit_source
from dlcompiler.target import resolve
from dlcompiler.views.loops.line_keys import source_lines
from tests.passes.reading import read

PROGRAMS = {
    "two kernels": """\
        def main(A: float32[64], C: float32[64]):
            allocate B: float32[64]
            for i in blockIdx.x(64):
                B[i] = A[i]*2.0
            for i.outer in blockIdx.x(2):
                for i.inner in threadIdx.x(32):
                    C[i.outer*32 + i.inner] = B[i.outer*32 + i.inner] + 1.0
        """,
    "a loop of the host, and a condition around two kernels": """\
        def main(A: float32[64], C: float32[64]):
            for t in range(4):
                if t < 3:
                    for i in threadIdx.x(16):
                        C[t*16 + i] = A[t*16 + i]
                    for i in threadIdx.x(16):
                        C[t*16 + i] = C[t*16 + i] + 1.0
        """,
    "both sides of a condition, a barrier": """\
        def main(A: float32[64], C: float32[64]):
            for i in blockIdx.x(2):
                allocate B: float32[32] in shared
                for j in threadIdx.x(32):
                    B[j] = A[i*32 + j]
                    barrier
                    if j < 16:
                        C[i*32 + j] = B[j + 1]
                    else:
                        C[i*32 + j] = B[0]
        """,
}


def _check(source, func):
    """Compare each line of the text with the line of the program that it is said to carry out."""
    printed, texts = str(func).splitlines(), source.text.splitlines()
    assert len(source.lines) == len(texts)
    for number, text in zip(source.lines, texts, strict=True):
        if text.startswith(("# launch", "def ")) or not text:
            assert number == (1 if text.startswith("def ") else 0)
        elif text.strip() == "else:":
            assert number == 0
        else:
            assert printed[number - 1].strip() == text.strip()


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_each_line_names_its_line_of_the_program(text):
    program = split_host_device(read(dedent(text)))
    _check(emit(program, resolve("gpu")), program.func)


def test_a_statement_of_each_kernel_leads_to_its_loop():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((64,), lambda i: B[i] + 1.0, name="C")
    s = dlc.create_schedule(C.op)
    for T in (B, C):
        outer, inner = s[T].split(T.op.axis[0], factor=32)
        s[T].bind(outer, te.thread_axis("blockIdx.x"))
        s[T].bind(inner, te.thread_axis("threadIdx.x"))
    source, func = emit_source(s, [A, C], "gpu")
    _check(source, func)
    keys = [line.keys for line in source_lines(func)]
    linked = {
        text.strip().split("[")[0]: keys[number - 1]
        for number, text in zip(source.lines, source.text.splitlines(), strict=True)
        if " = " in text
    }
    assert linked == {"B": ("B",), "C": ("C",)}
    loops = [
        keys[number - 1]
        for number, text in zip(source.lines, source.text.splitlines(), strict=True)
        if "blockIdx.x(" in text
    ]
    assert loops == [("B", "B/i.outer"), ("C", "C/i.outer")]
