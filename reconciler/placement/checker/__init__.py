"""Judges placements with code of its own: it shares only the problem and the model with the engine.

Entry: `violations`. Each rule of kube-scheduler or Karpenter has a file, named as in `constraints`.
"""
