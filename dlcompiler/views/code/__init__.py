"""Views of code: notation, Python, loop IR, LLVM IR, assembly, and the passes between them."""
