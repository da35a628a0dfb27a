"""Classic TVM's ``tvm.rpc``: sessions, always with this process."""

from dlcompiler.compat.missing import reporter
from dlcompiler.compat.sessions import LocalSession, connect

RPCSession = LocalSession

__getattr__ = reporter(__name__)
__all__ = ["LocalSession", "RPCSession", "connect"]
