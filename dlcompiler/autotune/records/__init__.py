"""Records: measured trials as stored values, their stores, and the best of them."""
