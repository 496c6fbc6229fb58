"""The embedded cluster: an object store and simple versions of the controllers that matter for node capacity."""
