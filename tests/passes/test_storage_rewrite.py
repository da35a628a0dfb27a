"""`storage_rewrite` and `flatten_storage`: which buffers share, which may not."""

from dataclasses import replace
from functools import partial

import pytest

from dlcompiler.ir import Allocate, rewrite
from dlcompiler.passes import flatten_storage, storage_bytes, storage_rewrite
from dlcompiler.pipeline.observers import Change, describe
from tests.passes.examples import after, keeps_results, shows
from tests.passes.reading import read

share = partial(storage_rewrite, min_bytes=1)

CHAIN = """\
def main(A: float32[{n}], C: float32[{n}]):
    allocate B: float32[{n}]
    allocate D: float32[{n}]
    for i in {kind}({n}):
        B[i] = A[i] + 1.0
    for i in {kind}({n}):
        D[i] = {value}
    for i in {kind}({n}):
        C[i] = D[i]*2.0
"""


def chain(value, kind="range", n=64):
    return CHAIN.format(value=value, kind=kind, n=n)


def test_the_example_of_its_docstring():
    shows(storage_rewrite)


def test_the_example_of_flattening():
    shows(flatten_storage)


@pytest.mark.parametrize("kind", ["range", "parallel", "vectorized"])
def test_an_elementwise_nest_works_in_place(kind):
    text = after(share, chain("B[i]*3.0", kind))
    assert "B_D[i] *= 3.0" in text
    assert text.count("allocate") == 1


@pytest.mark.parametrize("value", ["B[63 - i]", "B[i] + B[i // 2]", "B[0] + B[i]"])
def test_a_nest_that_reads_other_elements_does_not(value):
    assert after(share, chain(value)) == chain(value)


def test_a_nest_that_writes_elements_twice_does_not():
    text = chain("B[i]*3.0").replace(
        "        D[i] =", "        for k in range(2):\n            D[i] ="
    )
    assert after(share, text) == text


def test_small_buffers_keep_their_memory():
    text = chain("B[i]*3.0")
    assert after(storage_rewrite, text) == text
    assert after(storage_rewrite, chain("B[i]*3.0", n=1024)).count("allocate") == 1


def test_buffers_of_a_loop_share_with_those_in_it_only_while_they_rest():
    text = """\
def main(A: float32[64], C: float32[64]):
    allocate B: float32[64]
    for i in range(64):
        B[i] = A[i] + 1.0
    for t in range(4):
        allocate D: float32[64]
        for i in range(64):
            D[i] = A[i]*A[i]
        for i in range(64):
            C[i] = D[63 - i] + B[i]
"""
    assert after(share, text) == text
    assert after(share, text.replace(" + B[i]", "")).count("allocate") == 1


def test_iterations_of_a_parallel_loop_have_their_own_buffers():
    text = """\
def main(A: float32[64], C: float32[64]):
    allocate B: float32[64]
    for i in range(64):
        B[i] = A[i] + 1.0
    for i in range(64):
        C[i] = B[63 - i]
    for t in parallel(4):
        allocate D: float32[64]
        for i in range(16):
            D[i] = A[t*16 + i]*A[t*16 + i]
        for i in range(16):
            C[t*16 + i] = D[15 - i]
"""
    assert after(share, text) == text
    assert after(share, text.replace("parallel", "range")).count("allocate") == 1


@pytest.mark.parametrize(
    ("old", "new"), [("D: float32", "D: int32"), ("D: float32[64]", "D: float32[64] in local")]
)
def test_other_types_and_scopes_do_not_share(old, new):
    text = (
        chain("B[63 - i]")
        .replace(f"    allocate {old}", f"    allocate {new}", 1)
        .replace("C[i] = D[i]*2.0", "C[i] = float32(D[i])")
        .replace("D[i] = B[63 - i]", "D[i] = A[i]")
    )
    if "int32" in new:
        text = text.replace("D[i] = A[i]", "D[i] = int32(A[i])")
    else:
        text = text.replace("float32(D[i])", "D[i]")
    assert after(share, text) == text


def test_symbolic_buffers_share_when_their_sizes_are_equal():
    text = """\
def main(A: float32[n], C: float32[n]):
    allocate B: float32[n]
    for i in range(n):
        B[i] = A[i] + 1.0
    for i in range(n):
        C[i] = B[n - 1 - i]
    allocate D: float32[n]
    for i in range(n):
        D[i] = A[i]
    for i in range(n):
        C[i] = D[n - 1 - i]
"""
    assert after(share, text).count("allocate") == 1
    assert after(share, text.replace("D: float32[n]", "D: float32[n*2]")).count("allocate") == 2


def test_the_bytes_saved():
    func = read(chain("B[i]*3.0"))
    assert (storage_bytes(func), storage_bytes(share(func))) == (512, 256)


def test_padding_is_kept():
    func = read("""\
def main(A: float32[4, 16], C: float32[4, 16]):
    allocate B: float32[4, 16]
    for i in range(4):
        for j in range(16):
            B[i, j] = A[i, j]
            C[i, j] = B[i, j]
""")
    padded = replace(func.body.buffer, strides=(20, 1))

    def rule(node):
        if getattr(node, "buffer", None) is func.body.buffer:
            return replace(node, buffer=padded)
        return node

    flat = flatten_storage(func.with_body(rewrite(func.body, rule)))
    assert isinstance(flat.body, Allocate)
    assert flat.body.buffer.shape == (76,)
    assert "C[i, j] = B[i*20 + j]" in str(flat)
    assert flatten_storage(flat) is flat


@pytest.mark.campaign
def test_results_stay_on_random_schedules():
    assert keeps_results(share, range(400, 480))
    assert keeps_results(flatten_storage, range(400, 412))


def test_observers_tell_the_bytes_saved():
    before = read(chain("B[i]*3.0"))
    change = Change(2, "storage rewrite", before, share(before), 0.0)
    assert "-256 bytes of buffers" in describe(change)
