"""What files of pictures are called; nothing here computes, so nothing waits for torch."""

ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
"""How the names of pictures end."""
