"""Run code: loaded machine code, the thread pool, calls, timing, and worker processes.

This package handles text, bytes and pointers, never the IR. Its modules are imported one by one,
since some load libraries that others do not need:

- `dlcompiler.runtime.llvm`: LLVM IR text to machine code, loaded or as text;
- `dlcompiler.runtime.object_cache`: compiled objects, kept from one process to the next;
- `dlcompiler.runtime.cross`: code for other machines, made in a child process;
- `dlcompiler.runtime.c_source`: C source, compiled by the C compiler of this machine, if one is
installed;
- `dlcompiler.runtime.externs`: external functions that machine code may call;
- `dlcompiler.runtime.registry`: functions that programs call by name; `callbacks` calls those of
  Python;
- `dlcompiler.runtime.threads`: the number of threads of ``parallel`` loops;
- `dlcompiler.runtime.thread_pool`: the threads themselves, and the cores that they run on;
- `dlcompiler.runtime.native`: the machine code of the runtime itself, for loops and workspaces;
- `dlcompiler.runtime.function`: a kernel that takes NumPy arrays and checks them;
- `dlcompiler.runtime.timing`: the measurement of times;
- `dlcompiler.runtime.workers`, `dlcompiler.runtime.serve`: the two ends of a worker process.
"""
