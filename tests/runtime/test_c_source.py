"""C source compiled and loaded: lazily, privately, and with reasons where it is not."""

import stat
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from dlcompiler.errors import CallError, DeviceUnavailable, InternalError, UserError
from dlcompiler.runtime import c_source
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.c_source import CCode, c_compiler
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.libraries import save_library
from tests.processes import ends

on_linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
needs_compiler = pytest.mark.skipif(c_compiler() is None, reason="no C compiler on this machine")
TWICE = "int twice(const float *a, float *b)\n{\n    b[0] = 2 * a[0];\n    return 0;\n}\n"
FAILS = "int twice(const float *a, float *b)\n{\n    b[0] = 0;\n    return a[0] > 1 ? 2 : 0;\n}\n"
PARAMS = (Param("A", (1,), "float32"), Param("B", (1,), "float32", is_output=True))


def _function(text=TWICE, messages=()):
    code = CCode({"c": text}, "twice", returns_number=bool(messages))
    return Function(code, "twice", PARAMS, messages=messages)


def _one(value=3):
    return np.full(1, value, "float32")


@needs_compiler
def test_a_call():
    function, out = _function(), _one()
    function(_one(), out)
    assert out == 6
    with pytest.raises(CallError, match="wrong shape"):
        function(np.zeros(2, "float32"), out)
    with pytest.raises(CallError, match="the output overlaps argument 1"):
        function(out, out)


@needs_compiler
def test_what_it_returns_is_told():
    function = _function(FAILS, ("one", "A is above 1"))
    function(_one(1), _one())
    with pytest.raises(UserError, match=r"^call twice: A is above 1$"):
        function(_one(2), _one())


@needs_compiler
def test_it_is_compiled_once_in_a_private_folder(monkeypatch):
    commands, modes = [], []
    run = subprocess.Popen

    def noted(command, **options):
        commands.append(command)
        modes.append(stat.S_IMODE(Path(command[-2]).parent.stat().st_mode))
        assert "shell" not in options
        return run(command, **options)

    monkeypatch.setattr(c_source.subprocess, "Popen", noted)
    function = _function()
    assert not commands
    threads = [threading.Thread(target=function, args=(_one(), _one())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(commands) == 1
    assert modes == [0o700]
    assert not Path(commands[0][-2]).exists()


def test_without_a_compiler(monkeypatch):
    monkeypatch.setattr(c_source.shutil, "which", lambda name: None)
    function = _function()
    assert function.source() == TWICE
    with pytest.raises(DeviceUnavailable) as caught:
        function(_one(), _one())
    assert str(caught.value) == (
        "call twice: there is no C compiler to compile it\n"
        "  got       target='c'\n"
        "  expected  cc, gcc or clang on the PATH\n"
        "  hint      kernel.source() is the code; target='cpu' needs no compiler"
    )


@needs_compiler
@pytest.mark.parametrize(
    "body",
    ["return 0", "return unknown(a);", "const int *c = a;", "int *c = 3; return *c;", ""],
)
def test_a_source_that_is_refused_is_a_bug(body):
    text = f"int twice(const float *a, float *b)\n{{\n    b[0] = a[0];\n    {body}\n}}\n"
    with pytest.raises(InternalError, match=r"call twice: compile its C: .* refuses it"):
        _function(text)(_one(), _one())


@needs_compiler
def test_a_warning_of_what_a_program_means_is_no_error():
    body = "int unused; b[0] = (int)a[0] == (int)a[0] || 1u < 0; return (3 | 4) == 0;"
    out = _one()
    _function(f"int twice(const float *a, float *b)\n{{\n    {body}\n}}\n")(_one(), out)
    assert out == 1


@needs_compiler
def test_a_missing_header():
    with pytest.raises(DeviceUnavailable, match="a header of the C library is missing"):
        _function("#include <no_such_header.h>\n")(_one(), _one())


@pytest.mark.parametrize("said", ["math.h: No such file or directory", "'math.h' file not found"])
def test_a_missing_header_in_the_words_of_gcc_and_clang(said, monkeypatch, tmp_path):
    compiler = tmp_path / "cc"
    compiler.write_text(f'#!/bin/sh\necho "kernel.c:1:10: fatal error: {said}" >&2\nexit 1\n')
    compiler.chmod(0o755)
    monkeypatch.setattr(c_source, "c_compiler", lambda: str(compiler))
    with pytest.raises(DeviceUnavailable, match="a header of the C library is missing"):
        _function()(_one(), _one())


def test_a_compiler_that_does_not_start(monkeypatch):
    monkeypatch.setattr(c_source, "c_compiler", lambda: "/no/such/cc")
    with pytest.raises(DeviceUnavailable, match="/no/such/cc cannot be started"):
        _function()(_one(), _one())


@pytest.fixture
def sleeping_compiler(monkeypatch, tmp_path):
    """A compiler that starts another process, writes its id into a file, and waits for it."""
    compiler, started = tmp_path / "cc", tmp_path / "started"
    compiler.write_text(f"#!/bin/sh\nsleep 1000 &\necho $! > {started}.new\n"
                        f"mv {started}.new {started}\nwait\n")  # fmt: skip
    compiler.chmod(0o755)
    monkeypatch.setattr(c_source, "c_compiler", lambda: str(compiler))
    return started


def _wait_until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@on_linux
def test_a_compiler_that_does_not_end_is_killed_with_what_it_started(
    sleeping_compiler, monkeypatch
):
    communicate = subprocess.Popen.communicate

    def late(process, timeout):
        _wait_until(sleeping_compiler.exists)
        return communicate(process, timeout=0.01)

    monkeypatch.setattr(c_source.subprocess.Popen, "communicate", late)
    with pytest.raises(DeviceUnavailable, match=r"call twice: .*/cc did not end within 120 s"):
        _function()(_one(), _one())
    assert ends(int(sleeping_compiler.read_text()))


@on_linux
def test_an_interrupted_compiler_is_killed_with_what_it_started(sleeping_compiler, monkeypatch):
    def interrupted(process, timeout):
        _wait_until(sleeping_compiler.exists)
        raise KeyboardInterrupt

    monkeypatch.setattr(c_source.subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _function()(_one(), _one())
    assert ends(int(sleeping_compiler.read_text()))


@on_linux
def test_a_child_that_outlives_its_compiler_is_killed(monkeypatch, tmp_path):
    compiler, started = tmp_path / "cc", tmp_path / "started"
    compiler.write_text(f"#!/bin/sh\nsleep 1000 &\necho $! > {started}\n")
    compiler.chmod(0o755)
    monkeypatch.setattr(c_source, "c_compiler", lambda: str(compiler))
    monkeypatch.setattr(c_source, "LIMIT_S", 1.0)  # the child holds the pipes open
    with pytest.raises(DeviceUnavailable, match="did not end within 1 s"):
        _function()(_one(), _one())
    assert ends(int(started.read_text()))


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda f, _: f.llvm_ir, "show the LLVM IR of twice"),
        (lambda f, _: f.assembly, "show the assembly of twice"),
        (lambda f, path: save_library(f, path / "twice.lib"), "compile twice"),
    ],
)
def test_what_only_llvm_gives_is_refused(ask, what, tmp_path):
    with pytest.raises(UserError) as caught:
        ask(_function(), tmp_path)
    assert str(caught.value) == (
        f"{what}: it was built as C, which LLVM does not see\n"
        "  hint      kernel.source() is the C; target='cpu' builds machine code by LLVM"
    )
