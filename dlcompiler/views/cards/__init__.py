"""Cards: what a notebook shows for an object that is the value of a cell."""
