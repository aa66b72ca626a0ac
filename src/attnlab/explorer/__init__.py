"""The explorer: give a model an input, see its attention, change a part and see the answer change."""
