"""Logs and metrics: what the daemon tells operators beside Kubernetes' own status and events."""
