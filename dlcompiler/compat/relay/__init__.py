"""Relay's names for graphs: `dlcompiler.compat.tvm.relay` shows them under the classic modules."""
