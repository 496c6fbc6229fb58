"""Pods as manifests have them: PodSpecs, the shapes that placement works with, and the workloads that they come from."""
