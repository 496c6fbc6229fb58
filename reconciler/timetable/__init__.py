"""Pure time arithmetic: what is due or open when. Used by manifests, demand, plan and the daemon; it has no clock."""
