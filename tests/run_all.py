"""Run the whole test suite on all cores.

Of campaigns, one case of `SHARE` is run unless ``CI`` or ``DLCOMPILER_TEST_SHARE`` is set: see
``tests/conftest.py``. Arguments go to pytest: ``run_all.py tests/ir -k split``. The exit status is
0 only if all tests passed and at least one ran.

There is no limit on the whole run, which would fail a slow machine. pytest-timeout ends a test that
waits for ever; one that hangs in native code, where no Python runs, is ended with its process by
``faulthandler_timeout``, and pytest-xdist goes on with a new process (``pyproject.toml``).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "build" / "test" / "report.xml"
MOST_WORKERS = 8
SHARE = 20
ONE_BLAS_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def main(arguments: list[str]) -> int:
    is_whole = not any((ROOT / word.split("::")[0]).exists() for word in arguments)
    environment = {**ONE_BLAS_THREAD, **os.environ}
    if is_whole and not os.environ.get("CI"):
        environment.setdefault("DLCOMPILER_TEST_SHARE", str(SHARE))
    # No more than cores: tests wait for other processes, but these need the cores, too. With one
    # process more, a run on two cores takes a twelfth longer.
    workers = min(_core_count(), MOST_WORKERS)
    command = [sys.executable, "-m", "pytest", "-n", str(workers)]
    # A process whose tests are done takes over half of those that another one has left, from the
    # end of its queue: neighbours stay together, with what they share (a server, a notebook).
    command += ["--dist", "worksteal", f"--junit-xml={REPORT}", "--durations=10"]
    command += ["--durations-min=2", *(["tests", "dlcompiler"] if is_whole else []), *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def _core_count() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
