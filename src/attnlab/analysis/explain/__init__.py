"""Attribution: which parts of an input an answer is attributed to, by six methods, and which to believe."""
