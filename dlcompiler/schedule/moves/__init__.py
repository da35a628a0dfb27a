"""The moves that a schedule offers next, and what to do instead of a refused step."""
