"""The composition root: the one place where real adapters are bound, as typed arguments.

Everything heavy (a Kubernetes client, Git, numpy) is imported only on the way to the adapter that needs it.
"""
