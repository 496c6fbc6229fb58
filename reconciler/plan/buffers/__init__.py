"""What a plan says of buffers besides their chunks: balloon pods, one-shot buffers, whether their capacity is there."""
