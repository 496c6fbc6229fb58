"""Logs and metrics: what the daemon tells operators in addition to Kubernetes' statuses and events."""
