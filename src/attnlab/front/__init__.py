"""The front door: what ``import attnlab`` offers. Runs, models of others, and how both are made."""
