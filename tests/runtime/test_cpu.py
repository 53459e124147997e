"""What is known of the CPU."""
from __future__ import annotations

from caten.runtime import cpu

INFO = "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\nmodel\t\t: 1\nstepping\t: 2\ncpu family\t: 25\n\nprocessor\t: 1\nmodel name\t: Another\n"


def test_the_cpu_is_named_with_its_numbers() -> None:
    assert cpu.model(INFO) == "Some CPU @ 3 GHz (cpu family 25, model 1, stepping 2)"


def test_a_system_without_that_file_has_a_name_too() -> None:
    assert cpu.model("")
