"""What a built program does: run, verified and timed, in worker processes."""
