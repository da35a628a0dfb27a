"""Schedules written down: as JSON documents and as Python code."""
