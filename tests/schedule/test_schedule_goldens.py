"""Every primitive on small texts: the steps, the statements before, the statements after; and every net on each of
them."""
from __future__ import annotations

from pathlib import Path

import pytest
from schedule_nets import SIZES, assert_same, assert_sound, kernel_text, program

from caten.core.program import Schedule
from caten.core.text import show
from caten.schedule import script

FOLDER = Path(__file__).parent / "goldens"
LEAST = 10                     # cases for each primitive


def cases(file: Path) -> dict[str, tuple[str, str, str]]:
    """Title -> steps, text before, text after."""
    found = {}
    for part in file.read_text().split("=== ")[1:]:
        head, before, *after = [p.strip() for p in part.replace("--- after", "--- before").split("--- before")]
        title, _, steps = head.partition("\n")
        found[title] = (steps, before, after[0] if after else "")
    return found


ALL = [(file, title) for file in sorted(FOLDER.glob("*.txt")) for title in cases(file)]


@pytest.mark.parametrize(("file", "title"), ALL, ids=[f"{f.stem}: {t}" for f, t in ALL])
def test_golden(file: Path, title: str, update_goldens: bool) -> None:
    steps, before_text, expected = cases(file)[title]
    before = program(before_text)
    after = script.apply(before, script.parse_schedule(f"(schedule {steps})").steps, verify=True)
    shown = kernel_text(after)
    if update_goldens:
        _write(file, title, shown)
    else:
        assert shown == expected
    assert_sound(after)
    if "contract" not in steps:
        assert_same(before, after, SIZES if "(aref u 0)" not in before_text else SIZES[1:],
                    may_be_idle=title == "no iterations")


def _write(file: Path, title: str, shown: str) -> None:
    old = cases(file)
    new = {**old, title: (*old[title][:2], shown)}
    file.write_text("".join([f"=== {t}\n{steps}\n--- before\n{before}\n--- after\n{after}\n"
                             for t, (steps, before, after) in new.items()]))


def test_every_primitive_has_cases() -> None:
    counts = {name: len(cases(FOLDER / f"{name}.txt")) for name in script.PRIMITIVES}
    assert all(n >= LEAST for n in counts.values()), counts


@pytest.mark.slow
def test_a_printed_schedule_replays_to_the_same_program() -> None:
    for file, title in ALL:
        steps, text, _ = cases(file)[title]
        before = program(text)
        after = script.apply(before, script.parse_schedule(f"(schedule {steps})").steps)
        fact = after.first(Schedule)
        assert fact is not None
        assert script.apply(before, script.parse_schedule(show(fact)).steps) is after
