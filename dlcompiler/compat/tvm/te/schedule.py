"""Classic TVM's ``tvm.te.schedule``."""

from __future__ import annotations

from dlcompiler import schedule
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.schedules import create_schedule
from dlcompiler.schedule.auto_inline import inline_broadcast as AutoInlineBroadcast  # noqa: N812
from dlcompiler.schedule.auto_inline import inline_elementwise as AutoInlineElemWise  # noqa: N812
from dlcompiler.schedule.auto_inline import inline_injective as AutoInlineInjective  # noqa: N812
from dlcompiler.schedule.schedule import Schedule
from dlcompiler.schedule.stage import Stage

__getattr__ = reporter(__name__, fallback=schedule)
__all__ = [
    "AutoInlineBroadcast",
    "AutoInlineElemWise",
    "AutoInlineInjective",
    "Schedule",
    "Stage",
    "create_schedule",
]
