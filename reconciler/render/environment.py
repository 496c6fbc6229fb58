"""The Jinja2 sandbox: strict about undefined names, blind to the host. Used by render/documents.py and wiring.

Templates may come from the capacity repository, so they are untrusted: no attribute that starts with an underscore, no
file access, no imports, bounded output.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import DictLoader, StrictUndefined, TemplateError, TemplateSyntaxError, UndefinedError
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from reconciler.model.errors import Invalid

MOST_OUTPUT = 1_000_000
"""Characters one rendered document may have; the API server takes no object much larger."""
MOST_PAGE = 50_000_000
"""Characters of a page with pictures."""


class Templates:
    """Packaged templates by name, with a repository's own ones in front. Raises `Invalid` naming template and line."""

    def __init__(
        self,
        packaged: Mapping[str, str],
        own: Mapping[str, str] | None = None,
        *,
        filters: Mapping[str, Callable[[object], str]] | None = None,
        finalize: Callable[[object], object] | None = None,
    ) -> None:
        """filters: more filters by name; finalize: applied to every value that a template prints."""
        self._own = frozenset(own or {})
        self._environment = ImmutableSandboxedEnvironment(
            loader=DictLoader({**packaged, **(own or {})}),
            undefined=StrictUndefined,
            # Pages escape by themselves; documents are YAML, where `json` keeps a value a value.
            autoescape=lambda name: name is not None and name.endswith(".html.j2"),
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            finalize=finalize,
        )
        self._environment.filters["json"] = _as_json
        self._environment.filters.update(filters or {})
        # `range` is the one built-in that lets a short template take all memory.
        self._environment.globals.pop("range", None)

    def render(self, name: str, context: Mapping[str, Any], *, most_output: int = MOST_OUTPUT) -> str:
        """most_output: characters; pages with pictures may have more than documents."""
        try:
            pieces: list[str] = []
            length = 0
            for piece in self._environment.get_template(name).generate(context):
                length += len(piece)
                if length > most_output:
                    raise Invalid(f"{self._where(name)} writes more than {most_output:,} characters")
                pieces.append(piece)
            return "".join(pieces)
        except TemplateSyntaxError as error:
            raise Invalid(f"{self._where(name)}, line {error.lineno}: {error.message}") from error
        except UndefinedError as error:
            raise Invalid(
                f"{self._where(name)}: {error.message}",
                hint="docs/templates.md lists what a template is given",
            ) from error
        except SecurityError as error:
            raise Invalid(f"{self._where(name)} asks for what the sandbox refuses: {error}") from error
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise Invalid(f"{self._where(name)}: {error}") from error

    def _where(self, name: str) -> str:
        return f"template {name}" + (" (from the repository)" if name in self._own else "")


def _as_json(value: object) -> str:
    """A value as JSON, which is also YAML on one line: no manifest value can change the document's structure."""
    return json.dumps(value, ensure_ascii=False, sort_keys=False)
