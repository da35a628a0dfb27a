"""Give every kept program to the compilers, for each architecture of the presets.

``python -m tests.gpu_kernels FOLDER``. For each program that `collecting` has kept:

- NVRTC compiles its CUDA C to machine code, once for each compute capability of the presets;
- ptxas assembles its PTX for each of them;
- the OpenCL device runs the kept calls; results are compared with those of the simulator, which
  the tests compare with NumPy.

With ``--oclgrind``, oclgrind runs the short calls instead, and looks for races; with ``--device``,
the NVIDIA GPU of this machine runs all calls instead. Results are lines
of a file in the folder, and what is there is not tried again.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

from dlcompiler.errors import DLCompilerError
from dlcompiler.pipeline.devices import check_available
from dlcompiler.target import resolve
from tests.gpu_kernels.checking import CHECKS, Outcome, tried
from tests.simulate.gpu.oclgrind import LIBRARY

MOST_S = 1800
"""Most time for one program [s]."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--most", type=int, default=sys.maxsize, help="programs of this run")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--oclgrind", action="store_true", help="look for races")
    only.add_argument("--device", action="store_true", help="run the calls on the NVIDIA GPU")
    options = parser.parse_args()
    checks = ("oclgrind",) if options.oclgrind else ("device",) if options.device else CHECKS
    if options.device:
        try:
            check_available(resolve("cuda"), "run the kept calls")
        except DLCompilerError as error:
            print(error)
            return 2
    results = options.folder / f"{'-'.join(checks)}.jsonl"
    known = {json.loads(line)["program"] for line in results.open()} if results.exists() else set()
    paths = [p for p in sorted(options.folder.glob("*.pickle")) if p.stem not in known]
    first = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, results.open("a") as file:
        if options.oclgrind:
            use_oclgrind(Path(scratch))
        with ThreadPoolExecutor(options.processes) as threads:
            each = partial(tried_elsewhere, checks=checks)
            for done in threads.map(each, paths[: options.most]):
                file.write(json.dumps(asdict(done)) + "\n")
                file.flush()
                for problem in done.problems:
                    print(f"== {done.program} of {done.test}\n{problem}\n", flush=True)
    print(f"{time.monotonic() - first:.0f} s")
    return report(results)


def use_oclgrind(scratch: Path) -> None:
    """Make oclgrind the OpenCL device of the processes that this one starts."""
    (scratch / "oclgrind.icd").write_text(LIBRARY)
    os.environ |= {
        "OCL_ICD_VENDORS": str(scratch), "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_BUILD_OPTIONS": "-cl-opt-disable",
    }  # fmt: skip


_OWN = threading.local()
"""The process of each thread."""


def tried_elsewhere(path: Path, checks: tuple[str, ...]) -> Outcome:
    """Try a program in another process; its end is a problem of the program."""
    pool = getattr(_OWN, "pool", None)
    if pool is None:
        context = multiprocessing.get_context("spawn")
        pool = _OWN.pool = ProcessPoolExecutor(1, context, max_tasks_per_child=50)
    try:
        return pool.submit(tried, path, checks).result(timeout=MOST_S)
    except Exception as error:  # of whatever kind: the next program gets a new process
        for process in list(pool._processes.values()):
            process.kill()
        _OWN.pool = None
        return Outcome(path.stem, "", {"ended": 1}, [repr(error)])


def report(results: Path) -> int:
    """Print what all runs found; return 1 if there is any problem."""
    found = [json.loads(line) for line in results.open()]
    counts: collections.Counter[str] = collections.Counter()
    for each in found:
        counts.update(each["counts"])
    print(f"{len(found)} programs, {sum(bool(each['problems']) for each in found)} with problems")
    for name, count in sorted(counts.items()):
        print(f"{count:8d}  {name}")
    return int(any(each["problems"] for each in found))


if __name__ == "__main__":
    sys.exit(main())
