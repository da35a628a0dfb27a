"""Run classic scripts, each in a fork of this process, which has imported the compiler already.

The program that `test_scripts.py` starts once: the imports take longer than most scripts do. Each
line of standard input is a JSON list, the file for the output and the arguments of
``python -m dlcompiler.compat``; the answer is the exit status.
"""

import json
import os
import sys

from dlcompiler.codegen.llvm import generator  # noqa: F401  what a build imports when it needs it
from dlcompiler.compat import __main__ as command
from dlcompiler.compat.tvm import autotvm, te, topi  # noqa: F401
from dlcompiler.runtime import llvm  # noqa: F401


def run(output, arguments):
    """Be the command in this process, from here to its end."""
    for stream, path, flags in ((0, os.devnull, os.O_RDONLY), (1, output, os.O_WRONLY)):
        os.dup2(os.open(path, flags | os.O_CREAT), stream)
    os.dup2(1, 2)
    sys.argv[:] = [command.__file__, *arguments]
    sys.exit(command.main())


def main():
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(*json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
