"""The sources alone: in other programs, with sanitizers, by other compilers, with threads."""

import shutil
import subprocess

import pytest

from dlcompiler.pipeline import emit_source
from tests.codegen.c.test_text import PROGRAMS

WARNINGS = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-Wshadow")
CALLER = """
#include <stdio.h>
#include "{name}.h"

int main(void)
{{
    static float a[6 * 5];
    static float c[5 * 6];
    float sum = 0;
    for (int i = 0; i < 30; ++i) {{
        a[i] = (float)i / 8;
    }}
    if ({name}(a, c, 6, 5) != 0) {{
        return 2;
    }}
    for (int i = 0; i < 30; ++i) {{
        sum += c[i] > 0 ? 1 : 0;
    }}
    return printf("%g\\n", (double)sum) < 0;
}}
"""


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    return done.returncode, done.stdout, done.stderr


def _write(folder, name):
    s, args, _ = PROGRAMS[name]()
    source, _ = emit_source(s, args, "c", name)
    (folder / f"{name}.c").write_text(source.text)
    (folder / f"{name}.h").write_text(source.named("header"))
    (folder / "caller.c").write_text(CALLER.format(name=name))


def _call(compiler, folder, *flags):
    """Compile a program that calls ``symbolic``, and run it."""
    _write(folder, "symbolic")
    sources = (folder / "symbolic.c", folder / "caller.c")
    command = (compiler, "-std=c99", *WARNINGS, *flags, "-o", folder / "program", *sources, "-lm")
    status, _, said = _run(*map(str, command))
    assert status == 0, said
    return _run(str(folder / "program"))


def _has_flag(compiler, folder, *flags):
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    status, _, said = _run(compiler, *flags, "-o", str(folder / "empty"), str(folder / "empty.c"))
    if status or _run(str(folder / "empty"))[0]:
        pytest.skip(f"{compiler} has no {' '.join(flags)} here: {said.strip()[:200]}")


def test_a_program_of_its_own(compiler, tmp_path):
    assert _call(compiler, tmp_path, "-O2") == (0, "30\n", "")


def test_sanitizers_find_nothing(compiler, tmp_path):
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    _has_flag(compiler, tmp_path, *flags)
    status, told, said = _call(compiler, tmp_path, "-O1", "-g", *flags)
    assert (status, told, said) == (0, "30\n", "")


def test_openmp(compiler, tmp_path):
    _has_flag(compiler, tmp_path, "-fopenmp")
    assert _call(compiler, tmp_path, "-O2", "-fopenmp") == (0, "30\n", "")


def test_fast_math_is_refused(compiler, tmp_path):
    _write(tmp_path, "add")
    status, _, said = _run(compiler, "-ffast-math", "-c", "-o", "/dev/null", tmp_path / "add.c")
    assert status != 0
    assert "compile without -ffast-math, which changes results" in said


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_header_is_cpp_too(name, tmp_path):
    cpp = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if cpp is None:
        pytest.skip("no C++ compiler: none of c++, g++, clang++ is on the PATH")
    _write(tmp_path, name)
    (tmp_path / "twice.cpp").write_text(f'#include "{name}.h"\n#include "{name}.h"\n')
    command = (cpp, *WARNINGS, "-c", "-o", tmp_path / "twice.o", tmp_path / "twice.cpp")
    status, _, said = _run(*map(str, command))
    assert status == 0, said
