"""Views of loops: the loop tree, the iteration space, what a split leaves over."""
