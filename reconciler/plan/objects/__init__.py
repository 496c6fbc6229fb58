"""Manifests from Git against the cluster's objects: created, updated, drifted, pruned."""
