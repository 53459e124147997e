"""The library of operators: what each file says of itself, and its cases."""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
import tomli

import caten
from caten import driver
from caten.cli.boundary import guarded
from caten.errors import CatenError
from caten.frontend import operator_instances
from caten.frontend import operator_library as library
from caten.frontend.generic_signature import read_instance
from caten.frontend.spec import read_file, read_spec
from caten.loading import load_programs
from caten.options import Options

ENTRIES = library.entries()
FAMILIES = sorted({entry.family for entry in ENTRIES})


def test_names_are_unique_and_every_operator_is_described_and_has_a_case():
    names = [entry.name for entry in ENTRIES]
    assert sorted(set(names)) == sorted(names)
    assert len(names) >= 180
    for entry in ENTRIES:
        table = tomli.loads(entry.source)["composite"][0]
        assert re.fullmatch(r"[a-z][a-z0-9_]*", entry.name)
        assert table["documentation"] == entry.documentation
        assert table["documentation"].endswith((".", "?"))
        assert table["test"]["case"], entry.name


# Everyday without schedules: these take a minute each to plan, or their float64 oracles do.
PLAIN = ("attention", "convolutions", "linear_algebra", "pooling", "products", "random", "reductions", "sorting", "special", "transforms")
SLOW = ("rejection",)


@pytest.mark.slice(8)
@pytest.mark.parametrize("family", [pytest.param(f, marks=[pytest.mark.nightly] if f == "transforms" else []) for f in FAMILIES if f not in SLOW])
def test_the_cases_of_a_family(family, nightly):
    """Of every sixteenth operator, from another one in each family; fewer of those that take seconds to compile."""
    found, step = [entry for entry in ENTRIES if entry.family == family], 12 if family == "transforms" else 8
    some = [case["name"] for entry in found[len(family) % min(step, len(found))::step][::2] for case in entry.table["test"]["case"]]
    holds(family, 0 if family in PLAIN else 2, only=() if nightly else some)


def test_the_values_of_every_operator_are_right(nightly):
    """They are verified where `caten ir` ends: an index with a name of its own must stay inside."""
    options = Options(case_instances=True)
    for path in sorted(library.FOLDER.glob("*.toml" if nightly else "images.toml")):
        for op in load_programs(read_file(str(path)), options):
            driver.advance(op, "tensor", options)


@pytest.mark.nightly
@pytest.mark.parametrize("family", [*PLAIN, *SLOW])
def test_the_cases_of_a_slow_family(family):
    holds(family, 2)


def holds(family, opt, only=()):
    found = caten.test(library.FOLDER / f"{family}.toml", opt=opt, only=only)
    assert found.passed, "\n".join([f"{c.op} {c.case}: {c.status} {c.note}" for f in found.files for c in f.cases if not c.passed]
                                   + [str(d) for f in found.files for d in f.diagnostics])
    assert [d for f in found.files for d in f.diagnostics] == []          # E942 would be a fault of caten's that no case shows


def test_the_files_have_the_format_of_caten_fmt(capsys):
    assert guarded(["fmt", "--check", *[str(path) for path in sorted(library.FOLDER.glob("*.toml"))]]) == 0, capsys.readouterr().out


def test_figures_are_of_operators_that_are_there():
    names = {entry.name for entry in ENTRIES}
    measured = [entry for entry in ENTRIES if entry.figures]
    assert len(measured) > 0.5 * len(names)
    assert json.loads((library.FOLDER / library.FIGURES).read_text("utf-8"))["operators"].keys() <= names


def test_what_coverage_names_is_there():
    names = {entry.name for entry in ENTRIES}
    for each in tomli.loads((library.FOLDER.parents[2] / "docs" / "coverage.toml").read_text())["library"]:
        assert set(each["covered"].values()) <= names
        assert not set(each["covered"]) & set(each["missing"])


def test_the_command_lists_shows_and_refuses(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert guarded(["ops", "softmax"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("softmax(x{Floating}[~], axis=-1) -> y{Floating}[~]\n")
    assert library.find("softmax").source in shown
    assert re.search(r"^Calls on .*, one thread, .*:\n    axis0=\d+ +[\d.]+ [µm]s  \d+\.\d\d times as fast as \w+\n", shown, re.MULTILINE)
    assert guarded(["ops", "softmax", "--json"]) == 0
    assert {"sizes", "seconds", "peer", "ratio"} == set(json.loads(capsys.readouterr().out)[0]["figures"][0])
    assert guarded(["ops"]) == 0
    assert capsys.readouterr().out.endswith(f"\n{len(ENTRIES)} operators\n")
    assert guarded(["ops", "--family", "rounding", "--source"]) == 0
    assert capsys.readouterr().out.count("[[composite]]") == 4
    for words, hint in ((["softmaks"], "did you mean 'softmax'?"), (["build"], "caten ops lists them"), (["build", "softmaks"], "did you mean 'softmax'?")):
        assert guarded(["ops", *words]) == 2
        said = capsys.readouterr().err
        assert "[E902]" in said
        assert hint in said
    assert guarded(["ops", "build", "relu", "abs", "-o", "two.so"]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"two.so", "two.h", "two.json", "two_table.h"}


def test_a_library_of_instances_has_a_table(tool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert guarded(["ops", "build", "softmax", "take", "reciprocal", "--type", "float32,float64", "--rank", "1,2"]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"libops.so", "libops.h", "libops.json", "libops_table.h"}
    (tmp_path / "use.c").write_text("""
#include <stdio.h>
#include "libops_table.h"
int main(void)
{
    float x[6] = {1, 2, 3, 1, 1, 1}, y[6];
    const ct_operator *found = ct_find("softmax", "float32[2]");
    if (!found || ct_find("softmax", "int8[2]") || ct_find("take", "float64[2],int64[2]")->call == NULL)
        return 1;
    for (int n = 0; n < ct_operator_count; n++)
        if (ct_find(ct_operators[n].name, ct_operators[n].inputs) != &ct_operators[n])
            return 2;
    int status = ((int32_t (*)(const float *, float *, int64_t, int64_t))found->call)(x, y, 2, 3);
    printf("%d %.4f %s", status, y[5], found->symbol);
    return 0;
}
""")
    subprocess.run([tool("gcc"), "-std=c99", "-Wall", "-Wextra", "-Werror", "use.c", "./libops.so", "-o", "use"], check=True)
    assert subprocess.run(["./use"], env=os.environ | {"LD_LIBRARY_PATH": "."}, capture_output=True, text=True, check=True).stdout == "0 0.3333 ct_softmax_f32_2d"


def test_another_output_comes_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert guarded(["ops", "build", "relu", "abs", "-o", "two.c"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["two.c"]


@pytest.mark.parametrize(("name", "generic"), [
    ("softmax", "softmax"), ("softmax_f32_2d", "softmax"), ("log_softmax_f64_1d_axis_0", "log_softmax"), ("take_f32_1d_i64_1d", "take"),
    ("arange_start_2", "arange"), ("add_all", "add_all"), ("softmax_of_mine", "softmax_of_mine"), ("mine", "mine")])
def test_the_name_of_the_operator_of_an_instance(name, generic):
    assert library.generic_name(name) == generic


def test_a_folder_is_a_python_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert guarded(["ops", "build", "softmax", "gelu", "-o", "netops/"]) == 0
    run = subprocess.run([sys.executable, "-c", "import netops, numpy; print(netops.softmax(numpy.ones(4, 'f4')))"], capture_output=True, text=True, check=True)
    assert run.stdout == "[0.25 0.25 0.25 0.25]\n"


def test_an_operator_whose_default_instance_is_refused_says_how_to_choose_one():
    """In a signature whose axes are inferred the default is one axis, which is too few for some."""
    with pytest.raises(CatenError) as caught:
        load_programs(read_spec("ops:tensordot"), Options())
    found, = caught.value.diagnostics
    assert found.code == "E321"
    assert found.hint == 'give the instance for other types or axes: --instance "x=float64[M,N]"'
    assert found.notes == (("without --instance, tensordot is that of x=float32[x0] y=float32[y0]", None),)
    with pytest.raises(CatenError) as caught:
        load_programs(read_spec("ops:tensordot"), Options(instances=(read_instance("x=float32[M] y=float32[N]"),)))
    assert caught.value.diagnostics[0].notes == ()


def test_every_operator_has_an_instance(nightly):
    found = {e.name: list(operator_instances.that_exist(e, wanted, Options())) for e in (ENTRIES if nightly else ENTRIES[::10]) if (wanted := operator_instances.instances_of(e, ["f32"], [1]))}
    assert [name for name, instances in found.items() if not instances] == []


@pytest.mark.parametrize(("words", "said"), [
    (["softmax", "--type", "flot"], "'flot' is no element type"), (["softmax", "--rank", "x"], "'x' is no number of axes"),
    (["log_softmax", "--instance", "log: x=float32[M]"], "there is no operator 'log'"),
    (["softmax", "--all"], "operators are named, and --all is given"), (["softmax", "--instance", "gelu: x=float32[M]"], "there is no operator 'gelu'")])
def test_what_build_refuses(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert guarded(["ops", "build", *words]) in (1, 2)
    assert said in capsys.readouterr().err
