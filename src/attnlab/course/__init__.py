"""The checks of the course in ``docs/course``: what ``attnlab check`` runs, a module a lesson.

A student fills in a Python file with named values and functions. Each exercise asks it for one of them and
compares properties that are computed now: a formula with torch's on random inputs, the name of a head with
what ablation measures. Nothing is compared with a stored answer.
"""
