"""A forge in memory, for what is decided about comments and pull requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reconciler.forge.connection import GoneError
from reconciler.ports import Annotation, Comment, CommitStatus, Forge, PullRequest


class MemoryForge(Forge):
    """pulls: by number; texts: those of proposals; said: comments by pull request; statuses, remarks: by commit; hidden: comments by identity."""

    def __init__(self) -> None:
        self.pulls: dict[int, PullRequest] = {}
        self.texts: dict[int, str] = {}
        self.said: dict[int, list[Comment]] = {}
        self.statuses: dict[str, CommitStatus] = {}
        self.remarks: dict[str, tuple[Annotation, ...]] = {}
        self.hidden: set[str] = set()
        self._last = 0

    @property
    def name(self) -> str:
        return "Memory"

    def add_pull(self, number: int = 1, *, commit: str = "c1", branch: str = "more", fork: bool = False) -> PullRequest:
        pull = PullRequest(number, "More", commit, branch, f"refs/pull/{number}/head", "main", from_fork=fork)
        self.pulls[number] = pull
        return pull

    def pull_request(self, number: int) -> PullRequest:
        if number not in self.pulls:
            raise GoneError(f"there is no pull request {number}")
        return self.pulls[number]

    def open_pull_requests(self) -> tuple[PullRequest, ...]:
        return tuple(pull for _, pull in sorted(self.pulls.items()) if pull.is_open)

    def pull_requests_of(self, branch: str) -> tuple[PullRequest, ...]:
        found = [pull for _, pull in sorted(self.pulls.items(), reverse=True)]
        return tuple(pull for pull in found if pull.head_branch == branch and not pull.from_fork)

    def open_pull_request(self, *, title: str, body: str, head: str, base: str) -> PullRequest:
        number = len(self.pulls) + 1
        pull = PullRequest(number, title, "", head, f"refs/pull/{number}/head", base)
        self.pulls[number], self.texts[number] = pull, body
        return pull

    def edit_pull_request(self, number: int, *, title: str, body: str) -> None:
        self.pulls[number], self.texts[number] = replace(self.pulls[number], title=title), body

    def close_pull_request(self, number: int, *, title: str) -> None:
        self.pulls[number] = replace(self.pulls[number], title=title, is_open=False)

    def comments(self, number: int) -> tuple[Comment, ...]:
        return tuple(self.said.get(number, ()))

    def add_comment(self, number: int, body: str) -> None:
        self._last += 1
        self.said.setdefault(number, []).append(Comment(str(self._last), body))

    def edit_comment(self, number: int, comment: Comment, body: str) -> None:
        place = self._place(number, comment)
        if place is None:
            raise GoneError(f"comment {comment.identity} is gone")
        self.said[number][place] = replace(comment, body=body)

    def hide_comment(self, number: int, comment: Comment) -> None:
        self.edit_comment(number, comment, comment.body)
        self.hidden.add(comment.identity)

    def delete_comment(self, number: int, comment: Comment) -> None:
        place = self._place(number, comment)
        if place is not None:
            del self.said[number][place]

    def set_status(self, commit: str, status: CommitStatus) -> None:
        self.statuses[commit] = status

    def annotate(self, commit: str, status: CommitStatus, summary: str, annotations: Sequence[Annotation]) -> bool:
        del status, summary
        self.remarks[commit] = tuple(annotations)
        return True

    def close(self) -> None:
        """Nothing is held."""

    def _place(self, number: int, comment: Comment) -> int | None:
        identities = [each.identity for each in self.said.get(number, ())]
        return identities.index(comment.identity) if comment.identity in identities else None
