"""Facts about programs that no pass needs, but people and tuners do."""

from dlcompiler.analysis.work import Work, work_of

__all__ = ["Work", "work_of"]
