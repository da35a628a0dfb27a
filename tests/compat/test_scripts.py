"""Scripts in the shape of classic material, run unchanged by ``python -m dlcompiler.compat``."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dlcompiler.measurement.provenance import kind_of_times
from dlcompiler.target import resolve

FOLDER = Path(__file__).parent / "scripts"
SCRIPTS = sorted(FOLDER.glob("*.py"))
TUNED_ON_GPUS = ("tune_conv2d_cuda",)
FORKING = Path(__file__).with_name("forked_scripts.py")


def _run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "dlcompiler.compat", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "MPLBACKEND": "agg"},
        check=False,
    )


@pytest.fixture(scope="module")
def server():
    """Start the process that forks itself for each script."""
    with subprocess.Popen(
        [sys.executable, str(FORKING)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "MPLBACKEND": "agg"},
    ) as process:  # fmt: skip
        yield process
        process.stdin.close()


@pytest.mark.campaign
@pytest.mark.parametrize("script", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_script(script, server, tmp_path):
    if script.stem in TUNED_ON_GPUS and kind_of_times(resolve("gpu")) != "predicted":
        pytest.skip("no times are predicted for a simulated GPU")
    output = tmp_path / "output"
    server.stdin.write(json.dumps([str(output), [str(script)]]) + "\n")
    server.stdin.flush()
    status = server.stdout.readline()
    assert status == "0\n", output.read_text(encoding="utf-8")


def test_a_script_in_a_process_of_its_own():
    done = _run(FOLDER / "vector_add.py")
    assert done.returncode == 0, done.stderr


def test_scripts_see_their_arguments_and_their_folder(tmp_path):
    (tmp_path / "beside.py").write_text("WORD = 'found'\n", encoding="utf-8")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, beside, tvm\nprint(sys.argv[1:], beside.WORD, __name__, tvm.__name__)\n",
        encoding="utf-8",
    )
    done = _run(script, "--size", "3")
    assert done.stdout == "['--size', '3'] found __main__ dlcompiler.compat.tvm\n", done.stderr


def test_a_script_that_is_not_there(tmp_path):
    done = _run(tmp_path / "none.py")
    assert done.returncode == 2
    assert "no such script" in done.stderr


def test_a_script_that_fails_shows_its_own_error(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from tvm import relay\n", encoding="utf-8")
    done = _run(script)
    assert done.returncode == 1
    assert "tvm.relay is not part of dlcompiler yet" in done.stderr


def test_without_a_script_the_usage_is_shown():
    done = _run()
    assert done.returncode == 2
    assert "SCRIPT" in done.stderr
