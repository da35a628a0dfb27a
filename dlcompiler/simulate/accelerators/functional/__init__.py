"""What a program of an accelerator computes, and what is wrong with it."""
