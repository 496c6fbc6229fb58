"""The Jinja2 sandbox: undefined names are errors, the host is out of reach, and failures name the exact line.

The sandbox keeps a template from reaching code or files. It does not limit time or memory, which `worker.py` does.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from types import CodeType, TracebackType
from typing import Any

from jinja2 import (
    BaseLoader,
    Environment,
    StrictUndefined,
    TemplateError,
    TemplateNotFound,
    TemplateSyntaxError,
    Undefined,
    nodes,
)
from jinja2.compiler import CodeGenerator
from jinja2.environment import Template, TemplateModule
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from reconciler.model.errors import Invalid

MOST_PAGE = 50_000_000
"""The longest page with pictures, in characters."""
CODE_NAME = re.compile(r"headroom-template-(\d+)")
"""The name of a template's compiled code in tracebacks. It has a number, since file names may contain anything."""
_LINES = "debug_info"


class Sandbox(ImmutableSandboxedEnvironment):
    """Templates by name. Their compiled code keeps the template's line numbers, so that tracebacks show them."""

    def __init__(self, sources: Mapping[str, str], *, finalize: Callable[[object], object] | None = None) -> None:
        """finalize: applied to every value that a template prints."""
        super().__init__(
            loader=_Sources(sources),
            finalize=finalize,
            undefined=StrictUndefined,
            # Pages are escaped automatically. Documents are YAML, where the filter `json` does it.
            autoescape=lambda name: name is not None and name.endswith(".html.j2"),
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            # Constants are evaluated when the template runs, so that an endless one still has a line.
            optimized=False,
            cache_size=-1,
        )
        self.code_generator_class = _UnfoldedCode
        self.template_class = _Stateless
        self.filters["json"] = _as_json
        # Equal input must give equal bytes.
        del self.filters["random"]
        del self.globals["lipsum"]
        # A document needs no other numbers than those it gets.
        del self.globals["range"]

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        parser = Parser(self, source, name, filename)
        try:
            return parser.parse()
        except RecursionError as error:
            raise TemplateSyntaxError("nested too deep", parser.stream.current.lineno, name, filename) from error

    def _compile(self, source: str, filename: str) -> CodeType:
        lines = _template_lines(source)
        try:
            module = ast.parse(source, filename)
            for node in ast.walk(module):
                if isinstance(node, ast.expr | ast.stmt | ast.excepthandler):
                    node.lineno = node.end_lineno = lines(node.lineno)
                    node.col_offset = node.end_col_offset = 0
            code: CodeType = compile(module, filename, "exec")
        except SyntaxError as error:
            # Python's own limits: 20 nested loops or 100 nested levels.
            line = error.lineno or 1
            raise TemplateSyntaxError(
                str(error.msg), line if error.text is None else lines(line), filename=filename
            ) from error
        except RecursionError as error:
            raise TemplateSyntaxError("nested too deep", 1, filename=filename) from error
        return code


class _Stateless(Template):
    """A template whose module is made again for each import.

    Jinja2 would keep it with its namespaces and cyclers, so that one document would depend on those before.
    """

    def _get_default_module(self, ctx: Context | None = None) -> TemplateModule:
        names = () if ctx is None else ctx.globals_keys - self.globals.keys()
        return self.make_module({name: ctx.parent[name] for name in names} if ctx is not None else None)


class _Sources(BaseLoader):
    """Templates from memory, with numbers in their code's names."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._numbers = {name: number for number, name in enumerate(sources)}

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        del environment
        if template not in self._sources:
            raise TemplateNotFound(template)
        return self._sources[template], f"headroom-template-{self._numbers[template]}", lambda: True

    def list_templates(self) -> list[str]:
        return list(self._sources)


class _UnfoldedCode(CodeGenerator):
    """Evaluates every expression when the template runs. Jinja2 would otherwise evaluate constants as it compiles."""

    def _output_child_to_const(self, node: nodes.Expr, frame: Any, finalize: Any) -> str:
        if not isinstance(node, nodes.TemplateData):
            raise nodes.Impossible
        return super()._output_child_to_const(node, frame, finalize)


def _template_lines(source: str) -> Callable[[int], int]:
    """A function from lines of generated code to the template's lines. The code's last statement has the mapping."""
    pairs = [
        (int(code), int(template))
        for template, code in re.findall(r"(\d+)=(\d+)", source.rpartition(f"\n{_LINES} = ")[2])
    ]

    def line(code_line: int) -> int:
        return next((template for code, template in reversed(pairs) if code <= code_line), 1)

    return line


def place_of(error: BaseException, names: list[str]) -> tuple[str, int] | None:
    """The innermost template, by its place in `names`, and the line at which an exception was raised."""
    found = None
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        match = CODE_NAME.fullmatch(trace.tb_frame.f_code.co_filename)
        if match:
            found = (names[int(match[1])], trace.tb_lineno)
        trace = trace.tb_next
    if isinstance(error, TemplateSyntaxError):
        # Jinja2's lexer has the code's name in place of the template's
        codes = [CODE_NAME.fullmatch(text or "") for text in (error.filename, error.name)]
        known = [names[int(match[1])] for match in codes if match]
        found = (known[0], error.lineno) if known else found
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

    def render(self, name: str, context: Mapping[str, Any], *, most_output: int = MOST_PAGE) -> str:
        """Renders a page. most_output: in characters. Raises `Invalid` for one that is longer or cannot be rendered."""
        try:
            return bounded(self._environment, name, context, most_output)
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
            raise TooLongError(most, run.gi_frame.f_lineno)
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
