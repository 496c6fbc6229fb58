"""From planned changes to Kubernetes documents, through Jinja2 templates that a repository may replace.

Templates of a repository are untrusted. Documents are therefore rendered in a process of its own, which has limits.
"""
