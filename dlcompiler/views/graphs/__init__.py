"""View models of graphs: what is computed, which calls are one kernel, and what passes decided."""
