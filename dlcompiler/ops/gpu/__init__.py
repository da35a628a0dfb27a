"""Schedules of the operators for GPUs."""
