"""``python -m dlcompiler.compat SCRIPT [args]``: run a script written for classic TVM."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from dlcompiler.compat.installing import install

USAGE = "usage: python -m dlcompiler.compat SCRIPT [arguments of the script]"


def main(argv: Sequence[str]) -> int:
    """Run a script in this process, with the classic names installed."""
    if not argv or argv[0] in ("-h", "--help"):
        sys.stderr.write(f"{USAGE}\n\n{__doc__}\n")
        return 0 if argv else 2
    script = Path(argv[0])
    if not script.is_file():
        sys.stderr.write(f"{USAGE}\nno such script: {script}\n")
        return 2
    install()
    sys.argv = list(argv)
    sys.path[0] = str(script.resolve().parent)
    runpy.run_path(str(script), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
