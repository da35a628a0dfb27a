"""Save schedules as JSON documents and as Python code."""
