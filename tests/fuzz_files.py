"""Damage files of every kind and read them; print what neither is refused nor comes back right.

``python -m tests.fuzz_files --count 10000 --seed 1`` damages so many files of each kind;
``--case "link:1:17"`` repeats one.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

from dlcompiler.terminal import escaped
from tests.file_mutations import damaged, damaged_json
from tests.file_readers import READERS, Sample, reader

SLOWEST_S = 10.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--reader", action="append", choices=[item.name for item in READERS])
    parser.add_argument("--case", help="one case, such as link:1:17")
    options = parser.parse_args()
    if options.case:
        name, seed, number = options.case.rsplit(":", 2)
        return int(bool(run(name, seed, range(int(number), int(number) + 1))[1]))
    failures = 0
    for name in options.reader or [item.name for item in READERS]:
        begin = time.monotonic()
        count, failed = run(name, options.seed, range(options.count))
        seconds = time.monotonic() - begin
        print(
            f"{name}: seed {options.seed}, {count} damaged files, {failed} failures, "
            f"{seconds:.0f} s",
            flush=True,
        )
        failures += failed
    return 1 if failures else 0


def run(name: str, seed: str, numbers: range) -> tuple[int, int]:
    """Try cases of a reader; return how many there were, and how many failed."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        sample = reader(name).make(Path(folder))
        if sample is None:
            return 0, 0
        for number in numbers:
            problem = try_case(sample, Path(folder), f"{name}:{seed}:{number}")
            if problem:
                failed += 1
                print(f"== {name}:{seed}:{number}\n{problem}", flush=True)
    return len(numbers), failed


def try_case(sample: Sample, folder: Path, case: str) -> str:
    """Damage a file and read it; return what is wrong, or nothing."""
    rng = random.Random(case)
    if sample.inside is not None and rng.random() < 0.5:
        changed = sample.inside.pack(damaged_json(rng, sample.inside.text))
    else:
        changed = damaged(rng, sample.data)
    path = folder / f"damaged{sample.suffix}"
    path.write_bytes(changed)
    begin = time.monotonic()
    try:
        sample.check(changed, path)
    except sample.refuses_with as error:
        text = str(error)
        if escaped(text, keep="\n\t") != text or len(text) > 20_000:
            return f"an error that cannot be shown: {text[:500]!r}"
    except Exception:
        return traceback.format_exc(limit=-6)
    seconds = time.monotonic() - begin
    return f"it took {seconds:.0f} s" if seconds > SLOWEST_S else ""


if __name__ == "__main__":
    sys.exit(main())
