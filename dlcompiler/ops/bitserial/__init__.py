"""Products of numbers of 1 to 4 bits by counting bits: bitserial_dense, bitserial_conv2d."""
