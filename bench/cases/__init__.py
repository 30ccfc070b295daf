"""The cases, one file a theme; each has `contests()`."""
