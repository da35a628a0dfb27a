"""Classic AutoTVM: what stands behind the modules of ``compat.tvm.autotvm``."""
