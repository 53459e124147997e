"""A net of resource faults: inputs that are large in one way each become C in time, or a limit says so; a traceback never."""
from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from caten import compiler
from caten.errors import CatenError
from caten.frontend.spec import decode
from caten.frontend.spec_files import SpecText
from caten.options import Options
from growth import Growth
from pace import slowness

OPTIONS = Options(runtime="gcc", config=(("MARCH", "x86-64-v3"),))
MEGABYTES = 512


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Stops a test that takes more than it may."""
    start, growth = time.process_time(), Growth()
    yield
    took, grown = time.process_time() - start, growth.megabytes
    assert took < seconds or took < seconds * slowness(), f"{took:.1f} s"
    assert grown < MEGABYTES, f"{grown:.0f} MB"


def spec(code: str, inputs: str = '"X{float}[N]", "J{int32}[N]"', outputs: str = '"Y{float}[N]"') -> str:
    return f'[composite]\nname = "Big"\ninputs = [{inputs}]\noutputs = [{outputs}]\n[implementation]\ncode = """\n{code}\n"""\n'


def nest(loops: int, body: str) -> str:
    return "".join(f"(dotimes (i{k} 2) " for k in range(loops)) + body + ")" * loops


def text_nest(loops: int) -> str:
    body = "".join(f"(for i{k} 0 2 1 serial " for k in range(loops)) + "(setf (aref Y 0) 1.0:f32)" + ")" * loops
    return f"(op Deep (outputs Y) (buffer Y f32 (1) (0) out) (body {body}))"


SET = "(dotimes (i N) (setf (aref Y i) 0))"
SET_X = SET.replace("Y", "X")
GROWN = f"(array T float ({'(max (floordiv (+ ' * 16}N{' 1) 2) 3)' * 16})) (call CALLEE T) (call F0 X)"


def called(k: int, code: str) -> str:
    return (f'[[composite]]\nname = "F{k}"\ninputs = ["X{{float}}[N]"]\noutputs = ["X"]\n'
            f'[composite.implementation]\ncode = "{code}"\n')


LIMITED = {
    "256 loops": (spec(nest(256, "(setf (aref Y 0) 1)")), "E239"),
    "65 loops": (spec(nest(65, "(setf (aref Y 0) 1)")), "E239"),
    "100,000 operators": (spec(f"(dotimes (i N) (setf (aref Y i) (+ {' '.join(['(+ (aref X i) 1)'] * 50_000)})))"), "E239"),
    "a sum of sums, 25,000 deep": (spec(f"(dotimes (i N) (setf (aref Y i) {'(+ 1 ' * 25_000}(aref X i){')' * 25_000}))"), "E204"),
    "an index of 101 operators": (spec(f"(dotimes (i N) (setf (aref Y i) (aref X (mod {'(+ ' * 101}(aref J i){' 1)' * 101} N))))"), "E239"),
    "a tree of 2^16 operators on sizes": (spec("(dotimes (i N) (setf (aref Y i) (let* ((x0 N) " + " ".join(f"(x{k + 1} (+ x{k} x{k}))" for k in range(16))
                                               + ") x16)))"), "E239"),
    "10,000 statements": (spec(SET + "(setf (aref Y 0) 1) " * 10_000), "E239"),
    "1,000,000 parentheses": (spec("(" * 1_000_000), "E204"),
    "1,000,000 symbols": (spec("x " * 1_100_000), "E204"),
    "2,000 tensors": (spec(SET, ", ".join(f'"T{k}{{float}}[N]"' for k in range(2000))), "E120"),
    "a shape of 10,000 axes": (spec(SET, '"X{float}[' + "N " * 10_000 + ']"'), "E120"),
    "a declaration of 100,000 characters": (spec(SET, '"X{float}[(+ ' + "N " * 50_000 + ')]"'), "E004"),
    "a sum of 1,000 sizes": (spec(SET, '"X{float}[N]", "Z{float}[M](where M = ' + " + ".join(["N"] * 1000) + ')"'), "E239"),
    "a prefix sum of 1,000 sizes": (spec(SET, '"X{float}[N]", "Z{float}[(+ ' + "N " * 1000 + ')]"'), "E239"),
    "a product of 33 sizes": (spec(SET, '"X{float}[N]", "Z{float}[M](where 0 < ' + " * ".join(["N"] * 33) + ')"'), "E239"),
    "1,024 sizes": (spec(SET, ", ".join(f'"T{k}{{float}}[{" ".join(f"S{32 * k + n}" for n in range(32))}]"' for k in range(32))), "E120"),
    "300 conditions": (spec(SET, '"X{float}[N]", "Z{float}[M](where ' + ", ".join(f"M >= N + {k}" for k in range(300)) + ')"'), "E120"),
    "300 requirements": (spec(SET) + "[test]\nrequirements = [" + ", ".join(f'"N >= {k}"' for k in range(300)) + "]\n", "E120"),
    "calls in a file that bring 12,000 statements": ("".join([called(k, SET_X if k == 0 else "(call F0 X)" * 500) for k in range(16)]), "E239"),
    "extents that grow from call to call": ("".join([called(k, SET_X if k == 0 else GROWN.replace("CALLEE", f"F{k - 1}")) for k in range(6)]), "E239"),
    "a name of 100,000 letters": (spec(SET, f'"{"x" * 60_000}{{float}}[N]"'), "E106"),
    "200,000 keys": ("[composite]\n" + "".join(f"k{k} = 1\n" for k in range(200_000)), "E004"),
    "a dotted key of 100,000 parts": (".".join(["a"] * 100_000) + " = 1\n", "E004"),
    "a section of 100,000 parts": ("[" + ".".join(["a"] * 100_000) + "]\n", "E004"),
    "10,000 inline tables": ("x = " + "{a=" * 10_000 + "1" + "}" * 10_000, "E004"),
    "10,000 arrays": ("x = " + "[" * 10_000 + "]" * 10_000, "E004"),
    "a literal of 1,000,000 digits": (spec(f"(dotimes (i N) (setf (aref Y i) {'9' * 1_000_000}))"), "E308"),
    "a size of 100,000 digits": (spec(SET, f'"X{{float}}[{"9" * 60_000}]"'), "E109"),
    "an exponent of 18 digits": (spec("(dotimes (i N) (setf (aref Y i) 1e999999999999999999))"), "E308"),
    "a text 300 deep": (text_nest(300), "E204"),
    "calls that double": ("".join(f'''[[composite]]\nname = "F{k}"\ninputs = ["X{{float}}[N]"]\noutputs = ["X"]\n[composite.implementation]
code = "{SET.replace('Y', 'X') if k == 0 else f'(call F{k - 1} X) (call F{k - 1} X)'}"\n''' for k in range(20)), "E239"),
}
WITHIN = {
    "60 loops": spec(nest(60, "(setf (aref Y 0) 1)"), '"X{float}[2]"', '"Y{float}[1]"'),
    "300 statements": spec(SET + " ".join(f"(dotimes (i N) (incf (aref Y i) (* {k} (aref X i))))" for k in range(300))),
    "600 stores in one loop": spec("(dotimes (i N) (setf (aref Y i) 0) " + " ".join(f"(incf (aref Y i) {k})" for k in range(600)) + ")"),
    "60 checked reads": spec("(dotimes (i N) (setf (aref Y i) 0) " + " ".join(f"(incf (aref Y i) (aref X (mod (* i {k}) N)))" for k in range(60)) + ")"),
    "40 gathers": spec("(dotimes (i N) (setf (aref Y i) 0) " + " ".join(f"(incf (aref Y i) (aref X (aref J (mod (+ i {k}) N))))" for k in range(40)) + ")"),
    "60 conditions in each other": spec("(dotimes (i N) (setf (aref Y i) 0) " + " ".join(f"(when (/= i {k}) " for k in range(60)) + "(setf (aref Y i) 1)" + ")" * 61),
    "90 clauses": spec("(dotimes (i N) (setf (aref Y i) (cond " + " ".join(f"((= i {k}) {k})" for k in range(90)) + " (t 0))))"),
    "a power as an index": spec("(dotimes (i N) (dotimes (j N) (let* ((a (+ i j 1)) (b (* a a)) (c (* b b)) (d (* c c)) (e (* d d)) (f (* e e)) (g (* f f))) "
                                "(setf (aref Y (mod g N)) (aref X i)))))"),
    "32 axes": spec("".join(f"(dotimes (i{k} N) " for k in range(32)) + f"(setf (aref Y {' '.join(f'i{k}' for k in range(32))}) 0)" + ")" * 32,
                    '"X{float}[N]"', '"Y{float}[' + "N " * 32 + ']"'),
    "200 tensors": spec("(dotimes (i N) (setf (aref Y i) (+ " + " ".join(f"(aref T{k} i)" for k in range(99)) + ")))",
                        ", ".join(f'"T{k}{{float}}[N]"' for k in range(200))),
    "600 tensors": spec("".join(f"(dotimes (i N) (setf (aref Y{k} i) (aref T{k} i)))" for k in range(300)),
                        ", ".join(f'"T{k}{{float}}[N]"' for k in range(300)), ", ".join(f'"Y{k}{{float}}[N]"' for k in range(300))),
    "350 loops one after the other": spec("".join(f"(dotimes (i N) (setf (aref Y {k} i) (aref X i)))" for k in range(350)), outputs='"Y{float}[350 N]"'),
    "a chain of 1,000 operators on whole numbers": spec(f"(dotimes (i N) (setf (aref K i) {'(max (* (+ ' * 333}(aref J i){' 1) 3) (aref J i))' * 333}))",
                                                        outputs='"K{int32}[N]"'),
    "80 conditions around reads in two halves": spec(
        "(dotimes (i N) (set x 0.0) (when (< (+ i 39) N) (set x " + "".join(f"(if (< (+ i {k}) N) (+ (aref X (+ i {k})) " for k in range(40, 80)) + "0.0"
        + ") 0.0)" * 40 + ")) (setf (aref Y i) " + "".join(f"(if (< (+ i {k}) N) (+ (aref X (+ i {k})) " for k in range(40)) + "x" + ") 0.0)" * 40 + "))"),
    "300 composites": "".join(f'[[composite]]\nname = "F{k}"\ninputs = ["X{{float}}[N]"]\noutputs = ["X"]\n[composite.implementation]\ncode = "{SET.replace("Y", "X")}"\n'
                              for k in range(300)),
    "a sum of 60 sizes": spec(SET, '"X{float}[N]", "Z{float}[M](where M = ' + " + ".join(f"{k} * N" for k in range(60)) + ')"'),
    "250 conditions": spec(SET, '"X{float}[N]", "Z{float}[M](where ' + ", ".join(f"M >= N + {k}" for k in range(250)) + ')"'),
    "960 sizes": spec(SET, '"X{float}[N]", ' + ", ".join(f'"T{k}{{float}}[{" ".join(f"S{32 * k + n}" for n in range(32))}]"' for k in range(30))),
    "60 loops around 95 operators": spec(nest(60, f"(setf (aref Y 0) {'(max ' * 95}(cast float i1){' 2)' * 95})"), '"X{float}[2]"', '"Y{float}[1]"'),
    "a sum of 2,000 products": spec(f"(dotimes (i N) (setf (aref Y i) (+ {' '.join(['(* 2 (aref X i))'] * 2000)})))"),
    "a sum of sums, 2,000 deep": spec(f"(dotimes (i N) (let* ((x (aref X i))) (setf (aref Y i) {'(max (+ ' * 1000}x{' x) 1)' * 1000})))"),
    "a tree of 2^32 operators": spec("(dotimes (i N) (let* ((x0 (aref X i)) " + " ".join(f"(x{k + 1} (+ x{k} x{k}))" for k in range(16))
                                     + ") (setf (aref Y i) (let* ((y0 x16) " + " ".join(f"(y{k + 1} (+ y{k} y{k}))" for k in range(16)) + ") y16))))"),
    "a tree of 2^500 operators": spec("(dotimes (i N) (setf (aref Y i) (let* ((x0 (aref X i)) " + " ".join(f"(x{k + 1} (- x{k} (* 2 x{k})))" for k in range(500))
                                      + ") x500)))"),
    "a chain of 1,000 assignments": spec("(dotimes (i N) (set v 0) " + "(set v (+ v (aref X i)))" * 1000 + " (setf (aref Y i) v))"),
    "97 conditions in each other around values": spec("(dotimes (i N) (setf (aref Y i) " + "(where (< (aref X i) 3) " * 97 + "(aref X i)" + " 1)" * 97 + "))"),
    "a text 200 deep": text_nest(200),
    "documentation of 10 MB": spec(SET).replace("name =", 'documentation = "' + "doc " * 2_500_000 + '"\nname ='),
}


def prepared(text: str) -> str:
    return compiler.prepare([SpecText("big.toml", text, "lisp" if text.startswith("(") else "toml")], OPTIONS).source


@pytest.mark.slice(12)
@pytest.mark.parametrize("what", LIMITED)
def test_limits(what: str) -> None:
    text, code = LIMITED[what]
    with bounded(10), pytest.raises(CatenError) as refused:
        prepared(text)
    assert refused.value.diagnostics[0].code == code, str(refused.value)[:300]
    assert all(d.place is not None and len(d.message) < 500 for d in refused.value.diagnostics)


@pytest.mark.slice(12)
@pytest.mark.parametrize("what", WITHIN)
def test_within_the_limits(what: str) -> None:
    with bounded(20):
        assert "ct_" in prepared(WITHIN[what])


def test_a_file_of_more_than_16_mib_is_not_parsed() -> None:
    with bounded(2), pytest.raises(CatenError) as refused:
        decode("big.toml", b"# " + b"x" * (16 << 20))
    assert [d.code for d in refused.value.diagnostics] == ["E002"]
