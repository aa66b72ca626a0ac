"""The built-in problems: each a task that anyone could have written, with all that only it has."""
