"""Files of images: MNIST and its sources, IDX, Parquet, pictures; nothing about tasks."""
