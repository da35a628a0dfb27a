"""Views of a device's threads: blocks, phases between barriers, memories."""
