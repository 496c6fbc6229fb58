"""What capacity costs over the coming 30 days, and what a demand loses: of one revision, or of two side by side."""
