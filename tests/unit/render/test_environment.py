import pytest

from reconciler.model.errors import Invalid
from reconciler.render.environment import MOST_OUTPUT, Templates
from reconciler.report.escaping import PAGE_FILTERS


def render(text: str, **context: object) -> str:
    return Templates({}, {"own.yaml.j2": text}).render("own.yaml.j2", context)


def test_values_cannot_change_the_structure_of_a_document() -> None:
    assert render("name: {{ name | json }}", name="a\nkind: Secret") == 'name: "a\\nkind: Secret"'


def test_an_undefined_name_is_an_error_that_names_the_template() -> None:
    with pytest.raises(Invalid, match=r"own\.yaml\.j2 \(from the repository\): 'nmae' is undefined"):
        render("{{ nmae }}")


def test_a_syntax_error_names_the_line() -> None:
    with pytest.raises(Invalid, match="line 2"):
        render("a\n{% if %}")


@pytest.mark.parametrize(
    "attack",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ [].append.__globals__ }}",
        "{% set x = values.append(1) %}",
        "{% include '/etc/passwd' %}",
        "{% for i in range(10) %}{% endfor %}",
        "{{ self.__init__ }}",
        "{{ 1 / 0 }}",
    ],
)
def test_a_template_from_the_repository_reaches_nothing(attack: str) -> None:
    with pytest.raises(Invalid):
        render(attack, values=[1])


def test_output_is_bounded() -> None:
    with pytest.raises(Invalid, match="characters"):
        render(
            "{% for a in x %}{% for b in x %}{{ long }}{% endfor %}{% endfor %}", x=[0] * 100, long="x" * MOST_OUTPUT
        )


def test_own_templates_stand_in_front_of_packaged_ones() -> None:
    assert Templates({"a": "packaged", "b": "packaged"}, {"a": "own"}).render("a", {}) == "own"
    assert Templates({"a": "packaged", "b": "packaged"}, {"a": "own"}).render("b", {}) == "packaged"


def test_pages_escape_and_use_the_filters_they_are_given() -> None:
    page = Templates({"p.html.j2": "{{ x }}", "p.md.j2": "| {{ x | cell }} |"}, filters=PAGE_FILTERS)
    assert page.render("p.html.j2", {"x": "<b>"}) == "&lt;b&gt;"
    assert page.render("p.md.j2", {"x": "a|b\n<script> [x](y) @all"}) == "| a\\|b &lt;script> \\[x](y) @\u200ball |"
