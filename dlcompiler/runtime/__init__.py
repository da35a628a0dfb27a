"""What runs: loaded machine code, the thread pool, calls, the stopwatch, worker processes.

This package knows bytes and pointers, never the IR: text goes in, arrays come out. The modules are
imported one by one, since some of them load what others do not need:

- `dlcompiler.runtime.llvm`: LLVM IR text to machine code, loaded or as text;
- `dlcompiler.runtime.object_cache`: compiled objects, kept from one process to the next;
- `dlcompiler.runtime.cross`: code for other machines, made in a child process;
- `dlcompiler.runtime.c_source`: C source, compiled by this machine's C compiler, if there is one;
- `dlcompiler.runtime.externs`: what machine code may call outside itself;
- `dlcompiler.runtime.registry`: functions that programs call by name; `callbacks` calls those of
  Python;
- `dlcompiler.runtime.threads`: how many threads ``parallel`` loops use;
- `dlcompiler.runtime.thread_pool`: the threads themselves, and the cores that they run on;
- `dlcompiler.runtime.native`: the machine code of the runtime itself, for loops and workspaces;
- `dlcompiler.runtime.function`: a kernel that takes NumPy arrays and checks them;
- `dlcompiler.runtime.timing`: the one stopwatch;
- `dlcompiler.runtime.workers`, `dlcompiler.runtime.serve`: the two ends of a worker process.
"""
