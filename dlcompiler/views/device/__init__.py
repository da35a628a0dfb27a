"""Views of programs whose loops are bound to threads of a device.

`thread_block` shows which thread of a block touches which elements. `block_map` draws the two
grids, `block_phases` the phases between barriers. `barriers` finds the rows of the loop tree
before which a barrier stands. `memory` shows which memory of the device holds each buffer,
`fragment` which thread of a warp holds which element of a tile.
"""
