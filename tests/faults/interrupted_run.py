"""A run whose kernels take ten seconds: the program that the tests interrupt.

Usage: ``interrupted_run.py DATABASE block|stop``. It says ``started``, and at the end how long it
took from the request to the answer and to the end [s], and what became of the run.
"""

import dataclasses
import importlib
import json
import signal
import sys
import time

from dlcompiler import ops
from dlcompiler.autotune import tune
from dlcompiler.ops import by_device


def main(db, how):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gemm = importlib.import_module("dlcompiler.ops.gemm")
    slow = dataclasses.replace(
        gemm.MATMUL.schedules["cpu"], apply=lambda s, outs, cfg, target: None
    )
    gemm.MATMUL = dataclasses.replace(gemm.MATMUL, schedules=by_device({"cpu": slow}))
    workload = ops.operator("matmul").workload(m=1500, n=1500, k=1500)
    options = {"trials": 20, "tuner": "random", "threads": 1, "timeout_s": 60.0, "db": db}
    print("started", flush=True)
    if how == "block":
        run = tune(workload, block=True, **options)
        said = {}
    else:
        run = tune(workload, **options)
        sys.stdin.readline()
        asked = time.perf_counter()
        run.stop()
        answered = time.perf_counter() - asked
        run.wait()
        said = {"answered": answered, "ended": time.perf_counter() - asked}
    print(json.dumps({**said, "state": run.state, "trials": len(run.trials)}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])
