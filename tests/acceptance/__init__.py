"""The acceptance checks of the feature table, row by row, run as a user would run them."""
