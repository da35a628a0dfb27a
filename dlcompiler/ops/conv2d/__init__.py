"""Two-dimensional convolution: its shapes, its definitions, and the schedules that compute it."""
