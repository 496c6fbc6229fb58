"""Answers that one pass keeps for the next."""

from __future__ import annotations

from reconciler.model.remembered import PassCache


class Counting:
    """Joins words, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def joined(self, one: str, other: str) -> str:
        self.calls += 1
        return one + other


def test_equal_inputs_are_answered_once_and_others_anew() -> None:
    memory, counting = PassCache(), Counting()
    answers = []
    for other in ("b", "b", "c", "b"):
        memory.begin()
        answers.append(memory.once("key", counting.joined, "a", other))
    assert answers == ["ab", "ab", "ac", "ab"]
    assert counting.calls == 3


def test_of_each_key_the_answer_is_its_own() -> None:
    memory, counting = PassCache(), Counting()
    for _ in range(2):
        memory.begin()
        assert [memory.once(number, counting.joined, "a", str(number)) for number in range(3)] == ["a0", "a1", "a2"]
    assert counting.calls == 3


def test_what_a_pass_did_not_ask_for_is_forgotten() -> None:
    memory, counting = PassCache(), Counting()
    memory.begin()
    memory.once("key", counting.joined, "a", "b")
    memory.begin()
    memory.begin()
    memory.once("key", counting.joined, "a", "b")
    assert counting.calls == 2
