"""The product's own pages: rendered here, escaped, and bounded."""

import pytest

from reconciler.model.errors import Invalid
from reconciler.render.environment import Templates, TooLongError
from reconciler.report.escaping import PAGE_FILTERS


def test_pages_escape_and_use_the_filters_they_are_given() -> None:
    page = Templates({"p.html.j2": "{{ x }}", "p.md.j2": "| {{ x | cell }} |"}, filters=PAGE_FILTERS)
    assert page.render("p.html.j2", {"x": "<b>"}) == "&lt;b&gt;"
    assert page.render("p.md.j2", {"x": "a|b\n<script> [x](y) @all"}) == "| a\\|b &lt;script> \\[x](y) @\u200ball |"


def test_a_page_is_bounded() -> None:
    page = Templates({"p.md.j2": "{% for a in x %}{{ long }}{% endfor %}"})
    with pytest.raises(TooLongError):
        page.render("p.md.j2", {"x": [0] * 100, "long": "x" * 100}, most_output=9_999)


def test_a_page_with_a_mistake_names_it() -> None:
    with pytest.raises(Invalid, match=r"p\.md\.j2: 'x' is undefined"):
        Templates({"p.md.j2": "{{ x }}"}).render("p.md.j2", {})
