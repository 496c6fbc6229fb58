"""Whether the room of buffers is enough in whatever order their pods come: kube-scheduler's model on the nodes as they will stand."""
