"""Count the misses of the nests with valgrind's cachegrind, and record them.

``python -m tests.simulate.cache.cachegrind --record`` needs valgrind and gcc, and writes
``cachegrind.json`` beside this file. Without ``--record`` it prints both counts of each nest.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from dlcompiler.pipeline import simulate_cache
from dlcompiler.simulate.cache.tracing import FIRST_ADDRESS
from dlcompiler.target import CacheLevel
from dlcompiler.target.presets import X86_64_AVX2
from tests.simulate.cache.nests import NESTS

RECORD = Path(__file__).with_name("cachegrind.json")
EVENTS = ("Dr", "D1mr", "DLmr", "Dw", "D1mw", "DLmw")
"""Loads and stores, and those that miss in the first and in the last level."""
MOVED_BY = 1 << 30
"""Where the program can map memory; a multiple of all sizes, so that the sets are the same."""
GCC = ("-g", "-O1", "-fno-ivopts", "-fno-tree-loop-im", "-fno-move-loop-invariants", "-fno-tree-ch")
"""Loop counters stay in registers: other optimisations need more of them, and spill some."""
C_TYPES = {"float32": "float", "float64": "double", "int8": "signed char", "int32": "int"}

# The addresses are numbers in the code, so that no register is needed for them and none is spilled.
PROGRAM = """#include <sys/mman.h>
{arrays}
__attribute__((noinline)) void kernel(void) {{
  // begin
  {body}
  // end
}}
int main(void) {{
  mmap((void *){start:#x}ul, {size:#x}ul, PROT_READ | PROT_WRITE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  kernel();
  return 0;
}}
"""


def target_of(nest):
    """Return a target with the two caches of a nest."""
    levels = [
        CacheLevel(name, size, line=line, shared_by=1, ways=ways)
        for name, (size, ways, line) in (("D1", nest.first), ("LL", nest.last))
    ]
    return replace(X86_64_AVX2, caches=tuple(levels))


def simulated(nest):
    """Return our counts of a nest, by cachegrind's names."""
    found = simulate_cache(*nest.make(), target_of(nest))
    counts = {}
    for letter, is_write in (("r", False), ("w", True)):
        first, last = found.counts(is_write=is_write)
        counts |= {f"D{letter}": first.accesses, f"D1m{letter}": first.misses}
        counts |= {f"DLm{letter}": last.misses}
    return {name: counts[name] for name in EVENTS}


def program_of(nest):
    """Return the C program of a nest: the arrays lie where the simulation puts them."""
    found = simulate_cache(*nest.make(), target_of(nest))
    places = found.placements.items()
    arrays = "\n".join(
        f"#define {buffer.name} ((volatile {C_TYPES[buffer.dtype]} *){place.base + MOVED_BY:#x}ul)"
        for buffer, place in places
    )
    end = max(place.base + place.bytes for _, place in places)
    start = FIRST_ADDRESS + MOVED_BY
    return PROGRAM.format(arrays=arrays, body=nest.body, start=start, size=end - FIRST_ADDRESS)


def counted(nest):
    """Return cachegrind's counts of the function with the nest."""
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "nest.c"), Path(folder, "nest")
        out = Path(folder, "out")
        source.write_text(program_of(nest))
        subprocess.run(["gcc", *GCC, "-o", binary, source], check=True)
        caches = [f"--{name}={','.join(map(str, geometry))}" for name, geometry in (
            ("D1", nest.first), ("LL", nest.last))]  # fmt: skip
        subprocess.run(
            ["valgrind", "--tool=cachegrind", "--cache-sim=yes", *caches,
             f"--I1=32768,8,{nest.last[2]}", f"--cachegrind-out-file={out}", binary],
            check=True, capture_output=True,
        )  # fmt: skip
        lines = source.read_text().splitlines()
        body = range(lines.index("  // begin") + 1, lines.index("  // end") + 1)
        return _of_lines(out.read_text(), body)


def _of_lines(text, body):
    """Add up the counts of the kernel's lines, without those that save registers and return."""
    names, total, is_own = [], {}, False
    for line in text.splitlines():
        if line.startswith("events:"):
            names = line.split()[1:]
        elif line.startswith("fn="):
            is_own = line == "fn=kernel"
        elif is_own and line[:1].isdigit() and int(line.split()[0]) in body:
            for name, count in zip(names, line.split()[1:], strict=True):
                total[name] = total.get(name, 0) + int(count)
    return {name: total[name] for name in EVENTS}


def _version(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[
        0
    ]


def main():
    """Print both counts of each nest; with ``--record``, write those of cachegrind."""
    nests = {}
    for name, nest in NESTS.items():
        nests[name] = counted(nest)
        print(f"{name}\n  cachegrind {nests[name]}\n  simulated  {simulated(nest)}")
    if "--record" in sys.argv[1:]:
        record = {
            "made by": "python -m tests.simulate.cache.cachegrind --record",
            "with": [_version("valgrind", "--version"), _version("gcc", "--version")],
            "nests": nests,
        }
        RECORD.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
