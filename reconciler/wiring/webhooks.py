"""The daemon's webhook receiver, so that it looks at once at what the forge announces."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from reconciler.daemon.daemon import Daemon
from reconciler.daemon.reviews import Reviews
from reconciler.model.errors import Failure, Invalid
from reconciler.settings.settings import Settings
from reconciler.source.latest import LatestTree
from reconciler.telemetry.logs import logger
from reconciler.web.webhooks import PATH, WebhookServer

SECRET_VARIABLE = "HEADROOM_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable


@dataclass(frozen=True, slots=True)
class Announced:
    """The functions that webhooks and people trigger; each returns at once."""

    source: LatestTree
    daemon: Daemon
    reviews: Reviews | None

    def push(self) -> None:
        self.source.hasten()
        self.daemon.poll_now()

    def request(self, requested_at: str) -> None:
        """A person asks for a pass."""
        self.source.hasten()
        self.daemon.request(requested_at)

    def pull_request(self) -> None:
        if self.reviews is not None:
            self.reviews.wake()


def receive_webhooks(
    settings: Settings, clusters: Sequence[tuple[Settings, Announced]], count: Callable[[str], None], stack: ExitStack
) -> None:
    """Receives webhooks until the stack is left, if the settings name an address. Raises `Invalid` without a secret.

    clusters: what is told of a push to the branch that its settings name.
    """
    from reconciler.forge.webhooks import Push, UnsignedError, read_webhook

    if not settings.webhooks.listen:
        return
    _secret(settings)

    def take(headers: Mapping[str, str], body: bytes) -> int:
        try:
            event = read_webhook(headers, body, _secret(settings))
        except UnsignedError:
            count("unsigned")
            return 401
        except Failure:
            count("invalid")
            return 400
        if event is None:
            count("ignored")
            return 200
        count("taken")
        for own, announced in clusters:
            if isinstance(event, Push) and own.revision in {"", event.branch}:
                announced.push()
            announced.pull_request()
        return 202

    receiver = WebhookServer(settings.webhooks.listen, take)
    stack.callback(receiver.close)
    receiver.start()
    logger().info("receives webhooks", at=f"http://{receiver.address}{PATH}")


def _secret(settings: Settings) -> str:
    """The secret, read again for each webhook. An empty one is refused, since anybody could sign with it."""
    path = settings.webhooks.secret_file
    try:
        secret = Path(path).read_text(encoding="utf-8").strip() if path else os.environ.get(SECRET_VARIABLE, "").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise Invalid(
            f"secret file {path} cannot be read ({why})", hint="set webhooks.secretFile to a file with the secret alone"
        ) from error
    if not secret:
        raise Invalid(
            "webhooks are received only with a secret that they are signed with",
            hint=f"set {SECRET_VARIABLE} or webhooks.secretFile to what the forge was given",
        )
    return secret
