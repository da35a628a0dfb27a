"""Legality: what must hold in every state, and what a pending step still needs."""
