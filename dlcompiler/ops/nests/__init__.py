"""Operators as loops that run in order, for CPUs.

A definition by `te.compute` says what each element of the result is; for sorting and scattering
this repeats most of the work for each element. The loops here keep what they have found.
"""
