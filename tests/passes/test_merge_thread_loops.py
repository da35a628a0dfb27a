"""One loop for each thread axis, with the barriers that the loops' order asked for."""

from dataclasses import replace

from dlcompiler.ir import Allocate, seq
from dlcompiler.passes.merge_thread_loops import merge_thread_loops


def merged(program):
    """Return a program as one function again, with the merged nest of each kernel."""
    nests = []
    for launch in program.launches:
        body = merge_thread_loops(launch).as_loops()
        for loop in reversed(launch.loops):
            body = replace(loop, body=body)
        nests.append(body)
    body = seq(nests)
    for buffer in program.temporaries:
        body = Allocate(buffer, body)
    return replace(program.func, body=body)
