"""Classic TVM's ``tvm.ir.instrument``: what looks at the passes on graphs."""

from dlcompiler.compat.missing import reporter
from dlcompiler.compat.relay.instruments import (
    PassInstrument,
    PassTimingInstrument,
    PrintAfterAll,
    PrintBeforeAll,
    pass_instrument,
)

__getattr__ = reporter(__name__)
__all__ = [
    "PassInstrument",
    "PassTimingInstrument",
    "PrintAfterAll",
    "PrintBeforeAll",
    "pass_instrument",
]
