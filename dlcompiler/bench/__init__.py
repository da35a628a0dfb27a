"""Benchmarks of the compiler, and of its operators compared with other libraries."""

from dlcompiler.bench.compiler_speed import BENCHMARKS, BenchmarkResult, run_benchmarks
from dlcompiler.bench.machine import describe_machine
from dlcompiler.measurement.fma_peak import fma_peak_gflops

__all__ = ["BENCHMARKS", "BenchmarkResult", "describe_machine", "fma_peak_gflops", "run_benchmarks"]
