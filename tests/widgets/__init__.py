"""Tests of the widgets. A package, so that its fixtures end with its last test."""
