"""``python -m dlcompiler``: the same as the ``dlcompiler`` command."""

import sys

from dlcompiler.cli import main

sys.exit(main())
