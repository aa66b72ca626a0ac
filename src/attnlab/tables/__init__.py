"""Results as people read them: tables, sentences and figures, a module for each command."""
