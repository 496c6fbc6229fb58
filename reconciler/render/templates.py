"""The templates for documents: the packaged ones, and a repository's own, which override them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.model.errors import Invalid
from reconciler.model.refs import SourcePosition
from reconciler.render import process as rendering
from reconciler.render.process import BreachError, RenderProcess

SUFFIX = ".j2"
SECONDS = 20.0
"""The limit of processor time for all documents of a pass. Each may take 2, but a hundred slow ones must not delay the rest."""
MOST_OUTPUT = 1_000_000
"""The longest rendered document in characters. The API server does not accept much larger objects."""
_LOOPS = "look for nested loops, and for powers and products of large numbers"


class TemplateFailed(Invalid):
    """A template could not be rendered. position: the template's file in the repository, and the line."""

    def __init__(self, message: str, *, position: SourcePosition, own: bool, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.position = position
        self.own = own


class DocumentTemplates:
    """packaged: templates by name. own: a repository's templates by name. folder: where those are, for messages.

    strays: paths of templates that are in the repository but not in the folder.

    process: several of these may use it, one after the other. A template that broke the worker's limits is not tried again by the same
    object, since a hundred claims would otherwise wait a hundred times.
    """

    def __init__(
        self,
        packaged: Mapping[str, str],
        own: Mapping[str, str] | None = None,
        *,
        process: RenderProcess | None = None,
        folder: str = "templates",
        strays: Sequence[str] = (),
    ) -> None:
        self.strays = tuple(strays)
        self.folder = folder.rstrip("/")
        self.own = dict(own or {})
        self._sources = {**packaged, **self.own}
        self._names = list(self._sources)
        self._process = process or RenderProcess()
        self._breached: dict[str, TemplateFailed] = {}
        self._seconds = 0.0

    def render(self, name: str, context: Mapping[str, Any], *, most_output: int = MOST_OUTPUT) -> str:
        """The document's text. context: JSON values; most_output: characters. Raises `TemplateFailed`."""
        answer = self._ask(name, {"render": name, "context": context, "most": most_output})
        return str(answer["text"])

    def position(self, name: str, line: int = 1) -> SourcePosition:
        return SourcePosition(f"{self.folder}/{name}" if self.folder else name, line)

    def _ask(self, name: str, request: Mapping[str, Any]) -> dict[str, Any]:
        known = self._breached.get(name)
        if known is not None:
            raise TemplateFailed(known.message, position=known.position, own=known.own, hint=known.hint)
        if self._seconds > SECONDS:
            raise self._failure(
                name, 1, f"all templates together take more than {SECONDS:g} seconds of processor time", hint=_LOOPS
            )
        try:
            answer = self._process.ask(self._sources, request)
        except (ValueError, TypeError) as error:
            raise self._failure(name, 1, f"what it is given cannot be written as JSON ({error})", hint="") from error
        except BreachError as breach:
            failure = self._breach_failure(name, breach)
            self._breached[name] = failure
            raise failure from breach
        self._seconds += float(answer["seconds"])
        if "failed" in answer:
            raise self._failure(
                str(answer["template"] or name), int(answer["line"]), str(answer["failed"]), hint=str(answer["hint"])
            )
        return answer

    def _breach_failure(self, name: str, breach: BreachError) -> TemplateFailed:
        at = name if breach.template is None else self._names[breach.template]
        if breach.in_time:
            return self._failure(
                at, breach.line, f"the process that renders it was ended by {breach.ended_by}", hint=""
            )
        return self._failure(
            at,
            breach.line,
            f"it takes more than {rendering.SECONDS:g} seconds of processor time",
            hint=_LOOPS,
        )

    def _failure(self, name: str, line: int, why: str, *, hint: str) -> TemplateFailed:
        own = name in self.own
        shown = f"template {name}" + (" (from the repository)" if own else "")
        return TemplateFailed(f"{shown}, line {line}: {why}", position=self.position(name, line), own=own, hint=hint)


class TemplateSource:
    """Makes the templates for each tree of a repository. All are rendered in one process that is started when needed.

    packaged: templates by name. folder: the folder in the repository whose templates override them.
    """

    def __init__(
        self, packaged: Mapping[str, str], folder: str = "templates", *, process: RenderProcess | None = None
    ) -> None:
        self._packaged = packaged
        self._folder = folder
        self._process = process or RenderProcess()

    def of(self, files: Mapping[str, bytes]) -> DocumentTemplates:
        """files: the repository's, by path."""
        folder = self._folder.rstrip("/")
        prefix = f"{folder}/" if folder else ""
        paths = sorted(path for path in files if path.endswith(SUFFIX))
        return DocumentTemplates(
            self._packaged,
            {
                path.removeprefix(prefix): files[path].decode(errors="replace")
                for path in paths
                if path.startswith(prefix)
            },
            process=self._process,
            folder=self._folder,
            strays=[path for path in paths if not path.startswith(prefix)],
        )
