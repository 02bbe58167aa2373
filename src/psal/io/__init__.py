"""Photos with their metadata, pictures of any kind as tensors, and atomic writes."""
