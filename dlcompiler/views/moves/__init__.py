"""Views of moves: which steps are possible, what each would do, what is advised."""
