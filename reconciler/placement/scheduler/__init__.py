"""kube-scheduler as a model: where its default profile binds pods that come in an order."""
