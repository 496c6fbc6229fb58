"""From planned changes to Kubernetes documents, through Jinja2 templates that a repository may replace."""
