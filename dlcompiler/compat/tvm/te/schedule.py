"""Classic TVM's ``tvm.te.schedule``."""

from dlcompiler import schedule
from dlcompiler.compat.missing import reporter
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.schedule import Schedule
from dlcompiler.schedule.stage import Stage

__getattr__ = reporter(__name__, fallback=schedule)
__all__ = ["Schedule", "Stage", "create_schedule"]
