"""Functions of tensors that are described once and run by their plans: `morok.jit`."""
