"""Functions in files: written, linked, loaded, and refused where others may write."""

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import CallError, ProgramError, TargetError, UserError
from dlcompiler.pipeline import build
from dlcompiler.runtime import c_source, libraries
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.libraries import link_shared, load_library, save_library, save_object
from dlcompiler.schedule import create_schedule

needs_compiler = pytest.mark.skipif(
    libraries.c_compiler() is None, reason="no C compiler on this machine"
)


@pytest.fixture(scope="module", params=[False, True], ids=["serial", "parallel"])
def kernel(request):
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: te.exp(A[i]), name="B")
    s = create_schedule(B.op)
    if request.param:
        s[B].parallel(B.op.axis[0])
    return build(s, [A, B], name="powers")


def _check(function):
    a, b = np.linspace(0, 1, 64, dtype="float32"), np.empty(64, "float32")
    function(a, b)
    np.testing.assert_allclose(b, np.exp(a), rtol=1e-6)


@needs_compiler
def test_a_shared_object(kernel, tmp_path):
    written = save_library(kernel, tmp_path / "lib.so")
    assert (written.kind, written.surprise) == ("shared object", False)
    assert (tmp_path / "lib.so").read_bytes()[:4] == b"\x7fELF"
    loaded = load_library(tmp_path / "lib.so")
    _check(loaded)
    assert loaded.uses_threads == kernel.uses_threads
    assert loaded.source() == kernel.source()
    assert "powers" in loaded.assembly
    save_library(loaded, tmp_path / "again.so")
    _check(load_library(tmp_path / "again.so"))


@needs_compiler
def test_a_shared_object_without_this_package(kernel, tmp_path):
    save_library(kernel, tmp_path / "lib.so")
    script = (
        "import ctypes, sys\n"
        "lib = ctypes.CDLL(sys.argv[1])\n"
        "a, b = (ctypes.c_float * 64)(), (ctypes.c_float * 64)()\n"
        "lib.powers(a, b)\n"
        "assert list(b) == [1.0] * 64\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "lib.so")], check=True)


def test_a_container(kernel, tmp_path):
    written = save_library(kernel, tmp_path / "lib.bin")
    assert str(written) == "lib.bin is a container of dlcompiler"
    _check(load_library(tmp_path / "lib.bin"))


@pytest.mark.parametrize("name", ["lib.bin", "lib.so"])
def test_a_function_of_any_size(tmp_path, name):
    n, shift = te.var("n"), te.var("shift", "float32")
    A = te.placeholder((n + 1,), name="A")
    B = te.compute((n,), lambda i: A[i] + A[i + 1] + shift, name="B")
    save_library(build(create_schedule(B.op), [A, shift, B], name="pairs"), tmp_path / name)
    loaded = load_library(tmp_path / name)
    for size in (0, 1, 5):
        a, b = np.arange(size + 1, dtype="float32"), np.empty(size, "float32")
        loaded(a, 2.0, b)
        np.testing.assert_array_equal(b, a[1:] + a[:-1] + 2)
    with pytest.raises(CallError, match="shape"):
        loaded(a, 2.0, np.empty(6, "float32"))


@pytest.mark.parametrize("name", ["lib.bin", "lib.so"])
def test_assertions(tmp_path, name):
    A = te.placeholder((4,), name="A")
    ids = te.placeholder((4,), "int32", name="ids")
    B = te.compute((4,), lambda i: A[ids[i]], name="B")
    kernel = build(create_schedule(B.op), [A, ids, B], name="gather", instrument="bounds")
    save_library(kernel, tmp_path / name)
    loaded = load_library(tmp_path / name)
    a, b = np.arange(4, dtype="float32"), np.empty(4, "float32")
    loaded(a, np.array([3, 2, 1, 0], "int32"), b)
    assert b.tolist() == [3, 2, 1, 0]
    with pytest.raises(ProgramError):
        loaded(a, np.array([0, 0, 9, 0], "int32"), b)


def test_all_that_a_function_is_made_of_is_saved(kernel):
    made_of = inspect.signature(Function.__init__).parameters.keys() - {"self", "module", "holds"}
    assert made_of <= libraries.describe(kernel).keys()


def test_without_a_compiler(kernel, tmp_path, monkeypatch):
    monkeypatch.setattr(libraries, "c_compiler", lambda: None)
    written = save_library(kernel, tmp_path / "lib.so")
    assert written.kind == "container"
    assert "no C compiler" in str(written)
    _check(load_library(tmp_path / "lib.so"))
    save_object(kernel, tmp_path / "code.o")
    _check(load_library(tmp_path / "code.o"))
    assert link_shared(tmp_path / "linked.so", [tmp_path / "code.o"]).kind == "container"
    _check(load_library(tmp_path / "linked.so"))
    with pytest.raises(UserError, match="no C compiler"):
        link_shared(tmp_path / "two.so", [tmp_path / "code.o", tmp_path / "code.o"])


@needs_compiler
def test_a_library_in_use_is_replaced_not_overwritten(kernel, tmp_path):
    path = tmp_path / "lib.so"
    save_library(kernel, path)
    first = load_library(path)
    save_library(kernel, path)
    second = load_library(path)
    for function in (first, second):
        _check(function)


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_files_that_others_may_write_are_refused(kernel, tmp_path, mode):
    path = tmp_path / "lib.bin"
    save_library(kernel, path)
    assert path.stat().st_mode & 0o022 == 0
    path.chmod(mode)
    with pytest.raises(UserError, match="others may write it"):
        load_library(path)


def test_folders_that_others_may_write_are_refused(kernel, tmp_path):
    folder = tmp_path / "open"
    folder.mkdir()
    save_library(kernel, folder / "lib.bin")
    folder.chmod(0o777)
    with pytest.raises(UserError, match="others may replace it"):
        load_library(folder / "lib.bin")
    folder.chmod(0o1777)
    _check(load_library(folder / "lib.bin"))


def test_files_that_are_no_libraries_are_refused(kernel, tmp_path):
    path = tmp_path / "lib.bin"
    save_library(kernel, path)
    data = path.read_bytes()
    for wrong, problem in (
        (data[:-1], "the file is damaged"),
        (data.replace(b"powers", b"flowers"), "the file is damaged"),
        (b"\x7fELF" + b"\0" * 100, "not a library that dlcompiler wrote"),
    ):
        path.write_bytes(wrong)
        with pytest.raises(UserError, match=problem):
            load_library(path)
    with pytest.raises(UserError, match="cannot be read"):
        load_library(tmp_path / "nothing.so")
    with pytest.raises(UserError, match="not a regular file"):
        load_library(tmp_path)
    with pytest.raises(UserError, match="no such folder"):
        save_library(kernel, tmp_path / "nowhere" / "lib.bin")


def test_code_of_another_machine_is_refused(kernel, tmp_path, monkeypatch):
    description = {**libraries.describe(kernel), "triple": "sparc-unknown-linux-gnu"}
    path = tmp_path / "lib.bin"
    path.write_bytes(libraries._container(description))
    with pytest.raises(UserError, match="another family of processors"):
        load_library(path)
    if shutil.which("cc"):
        save_library(kernel, tmp_path / "lib.so")
        monkeypatch.setattr(libraries.Options, "check", _lacking)
        with pytest.raises(TargetError, match="lacks"):
            load_library(tmp_path / "lib.so")


def _lacking(self):
    raise TargetError("compile", "this machine lacks avx2")


def _written(kernel, folder):
    """Write a function in each kind of file."""
    save_library(kernel, folder / "lib.bin")
    save_object(kernel, folder / "code.o")
    paths = [folder / "lib.bin", folder / "code.o"]
    if libraries.c_compiler() is not None:
        save_library(kernel, folder / "lib.so")
        paths.append(folder / "lib.so")
    return paths


def test_a_changed_bit_of_what_is_executed_is_found(kernel, tmp_path):
    for path in _written(kernel, tmp_path):
        data = path.read_bytes()
        for at in (data.index(b"define "), data.index(b"float"), len(data) // 2, len(data) - 30):
            changed = bytearray(data)
            changed[at] ^= 1
            path.write_bytes(changed)
            with pytest.raises(UserError, match=r"the file is damaged|not a library"):
                load_library(path)


def test_a_cut_file_is_refused(kernel, tmp_path):
    for path in _written(kernel, tmp_path):
        data = path.read_bytes()
        for size in (0, 1, 100, len(data) // 2, len(data) - 4096, len(data) - 1):
            path.write_bytes(data[:size])
            with pytest.raises(UserError, match=r"the file is damaged|not a library"):
                load_library(path)


@needs_compiler
def test_a_file_that_another_program_changed_is_refused(kernel, tmp_path):
    path = tmp_path / "lib.so"
    save_library(kernel, path)
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(UserError) as error:
        load_library(path)
    assert str(error.value) == (
        f"load {path}: the file is damaged\n"
        "  because   the digest at its end is missing: it was cut, stripped, linked by another "
        "program, or written by an earlier version\n"
        "  hint      write it again, or copy it"
    )


@needs_compiler
def test_a_damaged_object_is_not_linked(kernel, tmp_path):
    path = tmp_path / "code.o"
    save_object(kernel, path)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"powers", b"flower"))
    with pytest.raises(UserError, match="the file is damaged"):
        link_shared(tmp_path / "lib.so", [path])
    with pytest.raises(UserError, match="cannot be read"):
        link_shared(tmp_path / "lib.so", [tmp_path / "nothing.o"])


@needs_compiler
def test_a_linker_that_does_not_end_is_ended(tmp_path, monkeypatch):
    slow = tmp_path / "cc"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(libraries, "c_compiler", lambda: str(slow))
    monkeypatch.setattr(c_source, "LIMIT_S", 0.2)
    (tmp_path / "other.o").write_text("x")
    with pytest.raises(UserError) as error:
        link_shared(tmp_path / "lib.so", [tmp_path / "other.o"])
    assert str(error.value) == f"link {tmp_path / 'lib.so'}: {slow} did not end within 0.2 s"
    assert not (tmp_path / "lib.so").exists()


@needs_compiler
def test_a_linker_whose_words_are_no_text_is_quoted(tmp_path, monkeypatch):
    failing = tmp_path / "cc"
    failing.write_text("#!/bin/sh\nprintf 'no \\377 object' >&2\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setattr(libraries, "c_compiler", lambda: str(failing))
    (tmp_path / "other.o").write_text("x")
    with pytest.raises(UserError, match="no \ufffd object"):
        link_shared(tmp_path / "lib.so", [tmp_path / "other.o"])


@needs_compiler
def test_what_was_checked_is_what_is_loaded(kernel, tmp_path, monkeypatch):
    path = tmp_path / "lib.so"
    save_library(kernel, path)
    load = libraries.load_shared

    def replaced_meanwhile(code):
        path.write_bytes(b"\x7fELF of somebody else")
        return load(code)

    monkeypatch.setattr(libraries, "load_shared", replaced_meanwhile)
    _check(load_library(path))


@needs_compiler
def test_a_library_that_is_cut_while_it_is_in_use(kernel, tmp_path):
    path = tmp_path / "lib.so"
    save_library(kernel, path)
    script = (
        "import os, sys, numpy as np\n"
        "from pathlib import Path\n"
        "from dlcompiler.runtime.libraries import load_library\n"
        "f = load_library(Path(sys.argv[1]))\n"
        "os.truncate(sys.argv[1], 0)\n"
        "a, b = np.zeros(64, 'float32'), np.empty(64, 'float32')\n"
        "f(a, b)\n"
        "assert (b == 1).all()\n"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)


@needs_compiler
def test_libraries_of_equal_names_are_told_apart(kernel, tmp_path):
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1, name="B")
    other = build(create_schedule(B.op), [A, B], name="powers")
    for number, function in enumerate((kernel, other)):
        (tmp_path / str(number)).mkdir()
        save_library(function, tmp_path / str(number) / "lib.so")
    first, second = (load_library(tmp_path / f"{n}" / "lib.so") for n in (0, 1))
    _check(first)
    b = np.empty(64, "float32")
    second(np.zeros(64, "float32"), b)
    assert (b == 1).all()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_is_never_opened(kernel, tmp_path):
    os.mkfifo(tmp_path / "lib.so")
    for path in (tmp_path / "lib.so", Path(os.devnull)):
        with pytest.raises(UserError, match="not a regular file"):
            load_library(path)


def test_a_description_that_makes_no_sense_is_refused(kernel, tmp_path):
    path = tmp_path / "lib.bin"
    good = libraries.describe(kernel)
    for change in (
        {"params": [{"name": "A"}]},
        {"params": 3},
        {"params": [{"name": "A", "shape": [["pow", 1, 2]], "dtype": "float32"}]},
        {"variables": [{"name": "n", "dtype": "word"}]},
        {"text": None},
        {"symbol": "nothing"},
    ):
        path.write_bytes(libraries._container({**good, **change}))
        with pytest.raises(UserError, match="the file is damaged"):
            load_library(path)
    path.write_bytes(libraries._container({**good, "dlcompiler_library": 9}))
    with pytest.raises(UserError, match="written by another version"):
        load_library(path)


def test_an_object_under_the_name_of_a_shared_object_is_refused(kernel, tmp_path):
    save_object(kernel, tmp_path / "code.o")
    (tmp_path / "code.o").rename(tmp_path / "lib.so")
    with pytest.raises(UserError, match="not a shared object of this system") as error:
        load_library(tmp_path / "lib.so")
    assert "TMPDIR names another" in str(error.value)
