"""What decides whether a chunk may go to a node, one file for each rule: kube-scheduler's plugins, and what Karpenter adds."""
