"""Views of possible steps.

`palette` lists what can be applied to a chosen loop, and why the rest cannot; `preview` shows the
effect of one step before it is made; `advice` lists what the rules of `dlcompiler.analysis.advice`
found.
"""
