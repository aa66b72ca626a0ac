"""The doctor: why does a model not learn? Faults with their evidence, confidence and remedy."""
