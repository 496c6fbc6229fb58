"""What a plan says of buffers besides their chunks: balloon pods, one-shot buffers, shares of running pods, whether their capacity is there."""
