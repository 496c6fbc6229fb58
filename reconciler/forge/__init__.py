"""GitHub, GitLab and Gitea: pull requests, comments, statuses and webhooks."""
