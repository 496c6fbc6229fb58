"""One pull request for one branch: opened, kept up to date, and closed when there is nothing left to propose."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.ports import Forge


@dataclass(frozen=True, slots=True)
class Proposal:
    """It is identified by branch and title; nothing else is remembered."""

    branch: str
    base: str
    title: str
    body: str


def is_declined(forge: Forge, proposal: Proposal) -> bool:
    """Whether somebody has closed this one without merging it. It is then not opened again."""
    pulls = [pull for pull in forge.pull_requests_of(proposal.branch) if pull.base_branch == proposal.base]
    if any(pull.is_open for pull in pulls):
        return False
    return any(pull.title == proposal.title and not pull.merged for pull in pulls)


def keep_open(forge: Forge, proposal: Proposal, *, changed: bool) -> int | None:
    """Opens or updates it; returns its number, None if it was declined. changed: whether the branch was just pushed, so that the body
    is new."""
    for pull in forge.pull_requests_of(proposal.branch):
        if pull.is_open and pull.base_branch == proposal.base:
            if changed or pull.title != proposal.title:
                forge.edit_pull_request(pull.number, title=proposal.title, body=proposal.body)
            return pull.number
    if is_declined(forge, proposal):
        return None
    made = forge.open_pull_request(title=proposal.title, body=proposal.body, head=proposal.branch, base=proposal.base)
    return made.number


def close(forge: Forge, branch: str, base: str) -> None:
    """Closes it, since there is nothing left to propose."""
    for pull in forge.pull_requests_of(branch):
        if pull.is_open and pull.base_branch == base:
            forge.close_pull_request(pull.number)
