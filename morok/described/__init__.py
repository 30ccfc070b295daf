"""`morok.jit`: functions of tensors, described (traced) once and then run by a plan."""
