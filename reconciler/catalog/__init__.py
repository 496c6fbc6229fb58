"""What can be launched, and at what price: from a file, from Karpenter's metrics, or from the cluster's nodes."""
