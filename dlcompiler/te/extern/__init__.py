"""`te.extern`: tensors computed by calls of external functions, or by loop IR written by hand."""
