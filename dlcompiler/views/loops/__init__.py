"""Views of loops, all with the keys of `line_keys`, such as ``C/i.outer``.

`loop_tree` is the loop nest of a schedule as rows; `nest_picture` and `nest_scene` draw it, `ghost`
compares two of them, `rearrange` turns a dragged row into a step. `iteration_space` lists what each
iteration touches, `strides` says how far accesses move, `tails` what a split leaves over.
`axis_graph` and `schedule_graph` draw where loops come from and what stages read.
"""
