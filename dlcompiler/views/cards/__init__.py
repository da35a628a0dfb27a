"""Cards: what a notebook shows for an object: a sentence, facts, a picture and tables.

`card` is the view model. `schedules` makes the cards of stages and verdicts, `machines` those of
targets and timings, `spaces` of operators and spaces, `reports` of traces and race reports.
`dlcompiler.display` names the card of each type.
"""
