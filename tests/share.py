"""The share of cases that tests run: one setting for pytest's cases and for counts in tests.

``DLCOMPILER_TEST_SHARE=20``, the default of ``make test``, means one of twenty; 1, the default of
pytest, means all. CI, which has 40 minutes, runs one of `CI_SHARE` of the longest campaigns (see
``tests/conftest.py``). Which ones follows from the commit, so that each tries other cases.
"""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

VARIABLE = "DLCOMPILER_TEST_SHARE"
CI_SHARE = 8
"""CI runs one of so many cases of the longest campaigns, ``make campaigns`` all of them."""
_FOLDER = Path(__file__).parent
_T = TypeVar("_T")


def share(*, longest: bool = False) -> int:
    """Return N, where one of N cases is run; `longest` is said of the longest campaigns."""
    in_ci = str(CI_SHARE) if longest and os.environ.get("CI") else "1"
    text = os.environ.get(VARIABLE, in_ci)
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        raise ValueError(f"{VARIABLE}={text!r}: expected a whole number from 1 on (1: all cases)")
    return int(text)


def share_of(count: int, at_least: int = 1) -> int:
    """Return how many of `count` like cases (rounds, kills, random programs) a test tries.

    Parameters
    ----------
    count : int
        How many it tries with a share of 1.
    at_least : int
        Fewer would show nothing.
    """
    return max(-(-count // share()), min(at_least, count))


def cases_of(cases: Sequence[_T]) -> list[_T]:
    """Return every N-th of some cases; the commit decides which is the first."""
    return list(cases[commit_number() % share() :: share()]) or list(cases[:1])


@functools.cache
def commit_number() -> int:
    """Return a number that follows from the commit; 0 where there is no repository."""
    command = ["git", "rev-parse", "--short=7", "HEAD"]
    try:
        done = subprocess.run(command, cwd=_FOLDER, capture_output=True, text=True, check=True)
        return int(done.stdout, 16)
    except (OSError, subprocess.CalledProcessError, ValueError):
        return 0
