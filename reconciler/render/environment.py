"""The Jinja2 sandbox: undefined names are errors, the host is out of reach, and failures name the exact line.

The sandbox keeps a template from reaching code or files. It does not limit time or memory, which `worker.py` does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined, TemplateError, TemplateSyntaxError, Undefined
from jinja2.environment import Template, TemplateModule
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from reconciler.model.errors import Invalid

MOST_PAGE = 50_000_000
"""The longest page with pictures, in characters."""


class Sandbox(ImmutableSandboxedEnvironment):
    """Templates by name."""

    def __init__(self, sources: Mapping[str, str], *, finalize: Callable[[object], object] | None = None) -> None:
        """finalize: applied to every value that a template prints."""
        super().__init__(
            loader=DictLoader(sources),
            finalize=finalize,
            undefined=StrictUndefined,
            # Pages are escaped automatically. Documents are YAML, where the filter `json` does it.
            autoescape=lambda name: name is not None and name.endswith(".html.j2"),
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            cache_size=-1,
        )
        self.template_class = _Stateless
        self.filters["json"] = _as_json
        # Equal input must give equal bytes.
        del self.filters["random"]
        del self.globals["lipsum"]
        # A document needs no other numbers than those it gets.
        del self.globals["range"]


class _Stateless(Template):
    """A template whose module is made again for each import.

    Jinja2 would keep it with its namespaces and cyclers, so that one document would depend on those before.
    """

    def _get_default_module(self, ctx: Context | None = None) -> TemplateModule:
        names = () if ctx is None else ctx.globals_keys - self.globals.keys()
        return self.make_module({name: ctx.parent[name] for name in names} if ctx is not None else None)


def place_of(error: BaseException) -> tuple[str, int] | None:
    """The innermost template by its name, and the line at which an exception was raised; None outside of templates."""
    if isinstance(error, TemplateSyntaxError) and error.name is not None:
        return error.name, error.lineno
    found, trace = None, error.__traceback__
    while trace is not None:
        template = trace.tb_frame.f_globals.get("__jinja_template__")
        if isinstance(template, Template) and template.name is not None:
            found = (template.name, template.get_corresponding_lineno(trace.tb_lineno))
        trace = trace.tb_next
    return found


class Templates:
    """The product's own pages, rendered in this process: they are trusted, and too large to send to another."""

    def __init__(
        self,
        packaged: Mapping[str, str],
        *,
        filters: Mapping[str, Callable[[object], str]] | None = None,
        finalize: Callable[[object], object] | None = None,
    ) -> None:
        """filters: more filters by name; finalize: applied to every value that a page prints."""
        self._environment = Sandbox(packaged, finalize=finalize)
        self._environment.filters.update(filters or {})

    def render(self, name: str, context: Mapping[str, Any]) -> str:
        """Renders a page. Raises `Invalid` for one that cannot be rendered, and TooLongError."""
        try:
            return bounded(self._environment, name, context, MOST_PAGE)
        except TemplateError as error:
            raise Invalid(f"template {name}: {error}") from error


class TooLongError(Exception):
    """More output than allowed. line: the template's, where the limit was exceeded."""

    def __init__(self, most: int, line: int) -> None:
        super().__init__(f"it writes more than {most:,} characters")
        self.line = line


def bounded(environment: Environment, name: str, context: Mapping[str, Any], most: int) -> str:
    """The template's output. Raises TooLongError beyond `most` characters, and whatever the template raises."""
    template = environment.get_template(name)
    run: Any = template.root_render_func(template.new_context(dict(context)))
    pieces: list[str] = []
    length = 0
    for piece in run:
        length += len(piece)
        if length > most:
            raise TooLongError(most, template.get_corresponding_lineno(run.gi_frame.f_lineno))
        pieces.append(piece)
    return "".join(pieces)


def _as_json(value: object) -> str:
    """A value as JSON, which is also YAML on one line: no manifest value can change the document's structure."""
    return json.dumps(value, ensure_ascii=False, sort_keys=False, default=_unwritable)


def _unwritable(value: object) -> str:
    """Raises for values that JSON cannot represent. An undefined name raises its own error, which names it."""
    if isinstance(value, Undefined):
        str(value)
    raise TypeError(f"{type(value).__name__} is not a value that JSON can represent")
