"""If the best of the values that were tried is the first or the last of them, a better one may lie
beyond. A comparison at such a value says less about what is compared than about the range.

Paper: Bergstra and Bengio, "Random Search for Hyper-Parameter Optimization", JMLR 2012
"""

losses = {rate: (rate - 0.1) ** 2 for rate in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)}
narrow = min([0.001, 0.003, 0.01], key=lambda rate: losses[rate])
wide = min(losses, key=lambda rate: losses[rate])
print(narrow, wide)
assert narrow == 0.01  # the edge of what was searched
assert wide == 0.1
assert losses[wide] < losses[narrow]
