"""The in-process cluster: an object store and small stand-ins for the controllers that matter to node capacity."""
