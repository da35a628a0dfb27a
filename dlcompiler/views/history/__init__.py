"""Views of a history: its states as a graph, two of them compared, measured steps."""
