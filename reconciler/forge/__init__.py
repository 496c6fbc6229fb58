"""Forges: pull requests, comments, statuses and webhooks. A forge is one file of this folder, named in `FORGES`.

The file has its client (`client.py` has what all of them do alike) and its `KIND`: everything else that headroom must know of it (`kind.py`
lists that). Only the CI file that
`headroom init` writes stands elsewhere, in `config/scaffold/ci`.
"""

from __future__ import annotations

FORGES = ("github", "gitlab", "gitea")
"""The forges as settings name them. A later one may send the webhook headers of an earlier one beside its own."""
