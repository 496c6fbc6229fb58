"""GitHub, GitLab and Gitea: pull requests, comments, statuses, and the webhooks that they send."""
