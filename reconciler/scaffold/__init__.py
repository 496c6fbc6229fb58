"""A first capacity repository as text: which Deployment to buffer, whose CI file, and the next steps. Pure."""
