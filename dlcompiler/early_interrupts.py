"""Handling of Ctrl-C while a shell command is still importing: one line, and exit status 130.

The package imports this module before all others, so it imports almost nothing. After the imports,
`dlcompiler.shell` handles signals.
"""

from __future__ import annotations

import os
import signal
import sys

_PROGRAMS = ("dlcompiler", "dlcompiler.exe")
_MODULES = ("dlcompiler", "dlcompiler.compat", "dlcompiler.bench.threads")


def catch_early_interrupts() -> None:
    """Install the handler of Ctrl-C, if this process is a shell command.

    An exception cannot be used here: libraries suppress or print one that interrupts their import.
    """
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default and is_command(sys.argv, sys.orig_argv):
        signal.signal(signal.SIGINT, leave)


def is_command(argv: list[str], words: list[str]) -> bool:
    """Tell whether a process is a command of this project.

    Parameters
    ----------
    argv
        Its ``sys.argv``. The first word is ``-m`` while Python looks for the module to run.
    words
        Its ``sys.orig_argv``.
    """
    program = os.path.basename(argv[0]) if argv else ""
    if program == "-m":
        return any(word in words or f"-m{word}" in words for word in _MODULES)
    return program in _PROGRAMS


def leave(number: int, frame: object) -> None:
    """Print one line and end the process, as a signal handler; there is nothing to clean up."""
    del frame
    try:  # noqa: SIM105  contextlib takes as long to import as all the rest
        os.write(2, b"interrupted\n")
    except OSError:
        pass  # nobody can read it
    os._exit(128 + number)
