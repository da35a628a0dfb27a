"""Views of the states of a schedule: their tree, two of them compared, and their measured times."""
