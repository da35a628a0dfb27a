"""`inject_prefetch`: hints for later iterations, where what they read is known."""

import pytest

from dlcompiler.codegen import emit
from dlcompiler.passes import inject_prefetch, simplify
from dlcompiler.target import resolve
from tests.passes.examples import after, example, shows
from tests.passes.reading import read

TEXT = example(inject_prefetch, "Before")


def test_the_example_of_its_docstring():
    shows(inject_prefetch, lambda func: simplify(inject_prefetch(func)))


def test_windows_are_joined():
    text = after(inject_prefetch, """\
def main(A: float32[66, 64], C: float32[64]):
    for i in range(64):  # prefetch.A = 1
        C[i] = A[i, 0] + A[i + 2, 3]
""")  # fmt: skip
    assert "for A.d0 in range(3):\n                prefetch A[i + 1 + A.d0*1, 0]" in text


def test_a_symbolic_loop():
    text = TEXT.replace("[64, 64], C: float32[64]", "[n, 64], C: float32[n]").replace(
        "range(64):  #", "range(n):  #"
    )
    assert "if i + 4 < n:" in after(inject_prefetch, text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("for i in range", "for i in parallel"),
        ("A[i, k]", "A[index(int32(C[i])), k]"),
        ("prefetch.A", "prefetch.B"),
        ("C[i] += A[i, k]", "C[i] += A[k, i]"),
    ],
)
def test_what_is_not_known_is_not_prefetched(old, new):
    text = TEXT.replace(old, new)
    if "A[k, i]" in new:  # 1024 rows, a line of each
        text = text.replace("range(64):\n            C", "range(1024):\n            C")
        text = text.replace("A: float32[64, 64]", "A: float32[1024, 64]")
    changed = after(inject_prefetch, text)
    assert "prefetch" not in changed
    assert changed == text.replace(f"  # {'prefetch.B' if 'B' in new else 'prefetch.A'} = 4", "")


def test_the_hint_becomes_an_instruction():
    source = emit(inject_prefetch(read(TEXT)), resolve("cpu"))
    assert "call void @llvm.prefetch.p0" in source.text
