"""Implementation of classic AutoTVM; the modules of ``compat.tvm.autotvm`` export it."""
