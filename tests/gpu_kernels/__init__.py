"""Every program for a GPU that the tests build: keep them, and give them to the compilers.

``make gpu-kernels`` runs the tests with `collecting` as a plugin of pytest, then `__main__`.
"""
