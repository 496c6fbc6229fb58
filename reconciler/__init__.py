"""headroom: keeps the Kubernetes node capacity that a Git repository declares."""

__version__ = "0.1.0"
