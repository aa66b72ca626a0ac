"""Attribution: which parts of an input an answer is owed to, by six methods, and which to believe."""
