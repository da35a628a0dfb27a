"""Each peer computes the work that its job names: compared with NumPy in float64."""

import subprocess
import sys
from pathlib import Path

import pytest

from dlcompiler.bench import peers
from dlcompiler.bench.peers import REGISTRY, Absent
from dlcompiler.bench.works import GRAMMAR, parse_work
from dlcompiler.errors import UserError
from tests.bench.reference_works import OPTIONS, WORKS, arrays_of, check, check_options, job_of

WITHOUT_NUMPY = {
    "elementwise:sigmoid:64",
    *(
        text
        for text in WORKS
        if text.startswith(("conv2d", "depthwise", "pool2d")) or "gelu" in text
    ),
}
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("text", WORKS)
def test_numpy_computes_the_work(text):
    assert check("numpy", text) or text in WITHOUT_NUMPY


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["torch", "onnxruntime"])
def test_a_library_computes_the_works(name):
    if reason := peers.missing(name):
        pytest.skip(reason)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.bench.reference_works", name],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    with_options, plain = map(int, done.stdout.split())
    assert plain >= len(WORKS) - 2
    assert with_options >= len(OPTIONS) - 14


@pytest.mark.parametrize("text", OPTIONS)
def test_numpy_computes_the_work_with_its_options(text):
    family = parse_work(text).family
    is_narrow = "dtype=float16" in text or "dtype=bfloat16" in text
    has_none = family in ("conv2d", "depthwise", "pool2d", "resize2d") or any(
        name in text for name in ("elu:64", "leaky_relu", "hard_sigmoid", "l2_norm", "logsumexp")
    )
    is_absent = (has_none and "relu:64,dtype" not in text) or (is_narrow and family == "gemm")
    assert check_options("numpy", text) == (not is_absent)


def test_each_family_has_a_work_here():
    own = {"bitserial_dense", "bitserial_conv2d"}  # no peer has them
    found = {parse_work(text).family for text in (*WORKS, *OPTIONS)}
    assert found == set(GRAMMAR) - own


def test_numpy_says_what_it_has_not():
    work = parse_work("conv2d:1x3x9x8,4,3,2,1")
    with pytest.raises(Absent, match="NumPy has no conv2d"):
        REGISTRY["numpy"](job_of(work, "plain", arrays_of(work)))


def test_an_unknown_peer_is_refused():
    with pytest.raises(UserError, match="no such peer"):
        peers.check_names(["numpy", "mkl"])
    assert peers.check_names(["numpy", "numpy"]) == ("numpy",)


def test_a_missing_package_is_a_reason(monkeypatch):
    monkeypatch.setattr(peers.importlib.util, "find_spec", lambda name: None)
    assert "onnxruntime and onnx not installed" in peers.missing("onnxruntime")
    assert peers.versions(["torch"]) == {}
