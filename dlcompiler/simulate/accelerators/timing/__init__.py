"""How many cycles a program of an accelerator takes, and when each instruction runs."""
