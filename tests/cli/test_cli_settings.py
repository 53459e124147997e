"""The little languages inside option values."""
from __future__ import annotations

import pytest

from caten.cli.option_values import read_binds, read_config
from caten.cli.warning_flags import read_policy
from caten.core.program import Bind, Scalar, Size
from caten.errors import Diagnostic, UsageError
from caten.frontend.op import OpProgram
from caten.testing.sizes_and_scalars import match_settings, read_settings

GEMM = OpProgram("Gemm", (Size("M"), Size("N_out"), Scalar("alpha", "f32"), Scalar("k", "i64")))


def codes(problem: pytest.ExceptionInfo[UsageError]) -> list[str]:
    return [d.code for d in problem.value.diagnostics]


def test_blanks_and_any_case_are_fine() -> None:
    given = read_settings(" m = 100 , n-OUT=5, ALPHA=2.5,k=-3,", "--test")
    assert match_settings(given, [GEMM]) == {"M": 100, "N_out": 5, "alpha": 2.5, "k": -3}


def test_a_size_fixed_by_D_needs_no_setting_and_allows_no_other() -> None:
    bound = GEMM.adding(Bind("M", 7))
    assert match_settings(read_settings("N_out=1,alpha=1,k=0", "--test"), [bound])["M"] == 7
    with pytest.raises(UsageError, match="fixed it"):
        match_settings(read_settings("M=8,N_out=1,alpha=1,k=0", "--test"), [bound])


@pytest.mark.parametrize(("text", "code", "message"), [
    ("M=1,alpha=1,k=1", "E906", "the size N_out is missing"),
    ("", "E906", "the sizes M, N_out are missing"),
    ("Q=1", "E904", "no size or scalar 'Q'"),
    ("M=-1", "E905", "cannot be -1"),
    ("M=2.5", "E905", "cannot be 2.5"),
    ("M=1099511627777", "E905", "cannot be"),
    ("k=2.5", "E904", "k is i64"),
])
def test_what_a_run_cannot_start_with(text: str, code: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        match_settings(read_settings(text, "--test"), [GEMM])
    assert code in codes(refused)
    assert message in str(refused.value)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("text", ["M", "M:1", "=1", "1=M", "M=x", "M==1", "M=1 N=2"])
def test_malformed_settings(text: str) -> None:
    with pytest.raises(UsageError, match="E904"):
        read_settings(text, "--test")


def test_binds() -> None:
    assert read_binds(["M=100", "N", "M=200"]) == (("M", 200), ("N", 1))
    for bad in ("M=-1", "M=1.5"):
        with pytest.raises(UsageError, match="E905"):
            read_binds([bad])


@pytest.mark.parametrize(("text", "pairs"), [
    ("OMP=1,MARCH=native", [("OMP", "1"), ("MARCH", "native")]),
    (' OMP = 1 , MARCH"native" ', [("OMP", "1"), ("MARCH", "native")]),
    ("MARCHnative,OMP1", [("MARCH", "native"), ("OMP", "1")]),
    ('CC="a,b",OPT=3', [("CC", "a,b"), ("OPT", "3")]),
    ("MARCH='x86_64_v3'", [("MARCH", "x86_64_v3")]),
    ("CC=/usr/bin/clang-19 -m64", [("CC", "/usr/bin/clang-19 -m64")]),
    ("OMP=", [("OMP", "")]),
    ("", []),
])
def test_config(text: str, pairs: list[tuple[str, str]]) -> None:
    assert read_config(text, lambda: ("OMP", "MARCH", "OPT", "CC")) == pairs


@pytest.mark.parametrize("text", ["OMP", "=1", "1=2", "OMP 1", 'A="x', "Q"])
def test_malformed_config(text: str) -> None:
    with pytest.raises(UsageError, match="E907"):
        read_config(text, lambda: ("OMP", "MARCH"))


def warning(code: str = "E650") -> Diagnostic:
    return Diagnostic(code, "w", severity="warning")


@pytest.mark.parametrize(("flags", "severity"), [
    ([], "warning"), (["error"], "error"), (["error=cache"], "error"), (["no-cache"], None), (["no-cache", "cache"], "warning"),
    (["error", "no-error"], "warning"), (["error=cache", "no-error=cache"], "warning"), (["all"], "warning"), (["no-all"], None),
    (["error", "no-cache"], None),
])
def test_warning_flags(flags: list[str], severity: str | None) -> None:
    judged = read_policy(flags).judge(warning())
    assert (judged.severity if judged else None) == severity


def test_w_silences_every_warning_and_no_error() -> None:
    assert read_policy([], silent=True).judge(warning()) is None
    assert read_policy([], silent=True).judge(Diagnostic("E301", "e")) is not None


def test_an_unknown_warning_is_refused() -> None:
    with pytest.raises(UsageError, match="E911"):
        read_policy(["cash"])
