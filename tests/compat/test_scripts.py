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
ENVIRONMENT = {**os.environ, "MPLBACKEND": "agg"}
TUNED_ON_GPUS = ("tune_conv2d_cuda",)
FORKING = Path(__file__).with_name("forked_scripts.py")


@pytest.fixture(scope="module")
def server():
    """Start the process that forks itself for each script."""
    with subprocess.Popen(
        [sys.executable, str(FORKING)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=ENVIRONMENT,
    ) as process:  # fmt: skip
        yield process
        process.stdin.close()


@pytest.fixture
def run(server, tmp_path):
    """Return a function that runs the command in a fork, and returns its status and its output."""

    def run(*arguments):
        output = tmp_path / "output"
        server.stdin.write(json.dumps([str(output), [str(item) for item in arguments]]) + "\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        return status, output.read_text(encoding="utf-8")

    return run


@pytest.mark.campaign
@pytest.mark.parametrize("script", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_script(script, run):
    if script.stem in TUNED_ON_GPUS and kind_of_times(resolve("gpu")) != "predicted":
        pytest.skip("no times are predicted for a simulated GPU")
    status, output = run(script)
    assert status == 0, output


def test_a_script_in_a_process_of_its_own():
    done = subprocess.run(
        [sys.executable, "-m", "dlcompiler.compat", FOLDER / "vector_add.py"],
        capture_output=True, text=True, timeout=100, env=ENVIRONMENT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_scripts_see_their_arguments_and_their_folder(run, tmp_path):
    (tmp_path / "beside.py").write_text("WORD = 'found'\n", encoding="utf-8")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, beside, tvm\nprint(sys.argv[1:], beside.WORD, __name__, tvm.__name__)\n",
        encoding="utf-8",
    )
    expected = "['--size', '3'] found __main__ dlcompiler.compat.tvm\n"
    assert run(script, "--size", "3") == (0, expected)


def test_a_script_that_is_not_there(run, tmp_path):
    status, output = run(tmp_path / "none.py")
    assert status == 2
    assert "no such script" in output


def test_a_script_that_fails_shows_its_own_error(run, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from tvm.relay import frontend\n", encoding="utf-8")
    status, output = run(script)
    assert status == 1
    assert "tvm.relay.frontend is not part of dlcompiler yet" in output


def test_without_a_script_the_usage_is_shown(run):
    status, output = run()
    assert status == 2
    assert "SCRIPT" in output
