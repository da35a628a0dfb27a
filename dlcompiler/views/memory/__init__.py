"""Views of memory: the buffers of each level, footprints, traffic."""
