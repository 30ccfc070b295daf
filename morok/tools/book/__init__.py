"""The book of rules: every rule with its text, meaning, verdict, source, and an example of a firing, as HTML pages."""
