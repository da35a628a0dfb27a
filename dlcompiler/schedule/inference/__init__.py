"""Facts inferred from a state: bounds of loops, placement of stages, threads around them."""
