"""Reports: a run told as one self-contained HTML file, a study or a sweep as a small folder.

Import from the modules: who only reads results needs neither pictures nor Optuna.
"""
