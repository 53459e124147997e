"""Positions in TOML: of keys, of values, and of every character of a string."""
import pytest
import tomli

from caten.errors import CatenError
from caten.frontend.toml_positions import MAX_DEPTH, MAX_KEY_PARTS, locate


def point(place):
    return place.line, place.column


def test_keys_tables_and_elements():
    places = locate('include = ["a", "b"]\n[composite]\nname = "Gemm"\n"outputs" = [\n  "C",  # c\n  "D",\n]\n[a.b]\n c.d = 1\n', "f")
    assert point(places.key("include")) == (1, 1)
    assert point(places.value("include")) == (1, 11)
    assert point(places.value("include", 1)) == (1, 17)
    assert point(places.key("composite")) == (2, 1)
    assert point(places.value("composite", "name")) == (3, 8)
    assert point(places.value("composite", "outputs", 1)) == (6, 3)
    assert point(places.key("a", "b")) == (8, 1)
    assert point(places.value("a", "b", "c", "d")) == (9, 8)
    assert places.key("composite", "name").text == 'name = "Gemm"'


def test_what_has_no_place_takes_the_nearest_enclosing_one():
    places = locate("\n[composite]\n", "f")
    assert point(places.key("composite", "inputs", 3)) == (2, 1)
    assert point(places.key("test")) == (1, 1)


def test_arrays_of_tables_and_inline_tables():
    places = locate('[[t]]\nx = 1\n[[t]]\nx = {y = 2, z = [3, {w = 4}]}\n[t.u]\nv = 5\n[[t.c]]\n[[t.c]]\nk = 6\n', "f")
    assert point(places.value("t", 0, "x")) == (2, 5)
    assert point(places.value("t", 1, "x", "z", 1, "w")) == (4, 26)
    assert point(places.value("t", 1, "u", "v")) == (6, 5)
    assert point(places.value("t", 1, "c", 1, "k")) == (9, 5)


STRINGS = [
    ('"abc"', [(0, (1, 6)), (2, (1, 8))]),
    ("'a\\c'", [(0, (1, 6)), (2, (1, 8))]),
    (r'"a\tb\u00e9c"', [(0, (1, 6)), (1, (1, 7)), (2, (1, 9)), (3, (1, 10)), (4, (1, 16))]),
    ('"""\nab\nc"""', [(0, (2, 1)), (1, (2, 2)), (3, (3, 1))]),
    ('"""ab\nc"""', [(0, (1, 8)), (3, (2, 1))]),
    ('"""\nab\\\n   cd"""', [(0, (2, 1)), (1, (2, 2)), (2, (3, 4)), (3, (3, 5))]),
    ("'''\nab\\\n  c'''", [(0, (2, 1)), (2, (2, 3)), (6, (3, 3))]),
    ('"""\na"b""c"""', [(1, (2, 2)), (5, (2, 6))]),
    ('"""a\\"""""', [(0, (1, 8)), (1, (1, 9))]),
]


@pytest.mark.parametrize(("literal", "points"), STRINGS)
def test_offsets_in_strings(literal, points):
    text = f"k = {literal}\n"
    value = tomli.loads(text)["k"]
    where = locate(text, "f").inside("k")
    for offset, expected in points:
        assert offset < len(value)
        assert point(where(offset)) == expected


@pytest.mark.parametrize("quotes", ['"""', "'''", '"', "'"])
def test_every_plain_character_of_a_string_is_found(quotes):
    code = "(dotimes (i M) (setf (aref é i) 1.0))" if len(quotes) == 1 else "\n(dotimes (i M)\n\n  (setf (aref é i)\t1.0))\n"
    text = f"# before\n[composite]\nx = 1 # y\ncode = {quotes}{code}{quotes}\nz = 2\n"
    value = tomli.loads(text)["composite"]["code"]
    lines = text.split("\n")
    where = locate(text, "f").inside("composite", "code")
    for offset, char in enumerate(value):
        place = where(offset)
        assert (lines[place.line - 1] + "\n")[place.column - 1] == char


def test_an_offset_past_the_end_is_the_end():
    assert point(locate('k = "ab"\n', "f").inside("k")(99)) == (1, 8)


@pytest.mark.parametrize("value", ["1979-05-27 07:32:00", "0xff", "-1.5e+3", "true", "[1, [2, {a = 3}],]", "[\n1 # c\n,\n2]", "{}", "inf"])
def test_values_of_every_kind_are_passed_over(value):
    text = f"a = {value}\nb = 1\n"
    tomli.loads(text)
    assert point(locate(text, "f").value("b")) == (text.count("\n"), 5)


@pytest.mark.parametrize(("text", "message"), [
    ("x = " + "[" * (MAX_DEPTH + 2), "nested deeper"), ("x = " + "{a=" * (MAX_DEPTH + 2), "nested deeper"),
    (".".join(["a"] * (MAX_KEY_PARTS + 1)) + " = 1", "dotted key"), ("[" + ".".join(["a"] * (MAX_KEY_PARTS + 1)) + "]", "dotted key")])
def test_limits(text, message):
    with pytest.raises(CatenError, match=f"E004.*{message}"):
        locate(text, "f")


def test_too_many_keys(monkeypatch):
    monkeypatch.setattr("caten.frontend.toml_positions.MAX_KEYS", 10)
    with pytest.raises(CatenError, match="E004: more than 10"):
        locate("x = [" + "1," * 11 + "]", "f")


@pytest.mark.parametrize("text", ["x", "x = ", "[x", 'x = "a', "x = '''", 'x = """a', "x = [1", "x = {a", "x = {a = 1", "= 1", "[]", "x = [1 2]"])
def test_the_scanner_leaves_syntax_errors_to_the_parser(text):
    locate(text, "f")
    with pytest.raises(tomli.TOMLDecodeError):
        tomli.loads(text)


def test_very_long_lines_are_not_quoted():
    assert locate("x = '" + "a" * 5000 + "'", "f").inside("x")(4000).text == ""
