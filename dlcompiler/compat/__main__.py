"""``python -m dlcompiler.compat SCRIPT [args]``: run a script written for classic TVM."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from dlcompiler import shell
from dlcompiler.compat.installing import install

USAGE = "usage: python -m dlcompiler.compat SCRIPT [arguments of the script]"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a script in this process, with the classic names installed.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments. By default those of the process; then its streams and signals are also set up
        for a command: see `dlcompiler.shell`.

    Returns
    -------
    int
        Exit status: 0, or 2 if there is no such script. Exceptions of the script propagate.
    """
    if argv is None:
        return shell.run(lambda: _prepared(sys.argv[1:]), _act)
    return _act(_prepared(argv))


def _prepared(argv: Sequence[str]) -> Path:
    """Return the script, with the classic names installed; without one, end with the usage."""
    if not argv or argv[0] in ("-h", "--help"):
        sys.stderr.write(f"{USAGE}\n\n{__doc__}\n")
        raise SystemExit(0 if argv else 2)
    script = Path(argv[0])
    if not script.is_file():
        sys.stderr.write(f"{USAGE}\nno such script: {script}\n")
        raise SystemExit(2)
    install()
    sys.argv = list(argv)
    sys.path[0] = str(script.resolve().parent)
    return script


def _act(script: Path) -> int:
    runpy.run_path(str(script), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
