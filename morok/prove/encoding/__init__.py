"""From a checked rule to what the solver must judge: the parts of a rule, each read by a file of its own."""
