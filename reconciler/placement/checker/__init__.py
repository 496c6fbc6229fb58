"""Judges placements with code of its own: it shares nothing with the engine but the problem and the model.

Entry: `violations`. There is one file for each thing that kube-scheduler or Karpenter judges, named as in `constraints`.
"""
