"""Products of numbers of 1 to 4 bits by counting bits: bitserial_dense and bitserial_conv2d.

`encoding` says what bits stand for and how they are packed, `stages` what a kernel computes, and
`schedule` how, on CPUs.
"""
