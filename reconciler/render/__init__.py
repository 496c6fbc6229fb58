"""From planned changes to Kubernetes documents, through Jinja2 templates that a repository may replace.

Templates of a repository are untrusted. So documents are rendered in a separate process with limits.
"""
