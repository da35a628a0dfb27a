"""Views of a program as text; most lines carry the keys of the loops that they come from.

From the expression to machine code: `notation_view`, `python_view` (the steps), `program` (loop
IR), `pass_steps` (what each pass changed), `llvm_text`, `assembly_text`, and `kernels_text` for a
device.
`code_text` puts the lines of generated code under the lines of the program. `export` writes a
schedule as a script or a notebook.
"""
