"""The order of the axes of a value between two others: that of the maps that read it, or that in which its own formula reads arrays."""
from __future__ import annotations

import pytest
from test_raising import definitions
from test_structure_families import values_of

from caten.frontend.spec_files import SpecText

SUM = "(for i 0 M 1 serial (for j 0 N 1 serial (for p 0 K 1 serial (incf (aref C i j) {}))))"
FIRST = "(define v0 (compute f32 ((i {}) (j {})) (exp {})))"


def scratch(axes: str, index: str, e: str) -> str:
    """An array of intermediate results: its extents, the loops in that order, what is stored."""
    (a, b), (i, j) = axes.split(), index.split()
    return f"(local t f32 ({axes}) scratch) (for {i} 0 {a} 1 serial (for {j} 0 {b} 1 serial (setf (aref t {index}) (exp {e}))))"


def test_a_map_that_a_map_reads_has_the_order_of_its_reader() -> None:
    product = "(local t f32 (N M) scratch) (for j 0 N 1 serial (for i 0 M 1 serial (setf (aref t j i) 0.0) " \
              "(for p 0 K 1 serial (incf (aref t j i) (* (aref A i p) (aref B p j))))))"
    found = definitions(product + "(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref C i j) (exp (aref t j i)))))")
    assert found[0].startswith("(define v0 (reduce f32 ((i M) (j N)) ((p K))")


def test_what_only_a_reduction_reads_has_the_order_in_which_it_reads() -> None:
    for axes, index in (("M K", "i p"), ("K M", "p i")):
        found = definitions(scratch(axes, index, "(aref A i p)") + SUM.format(f"(* (aref t {index}) (aref B p j))"))
        assert found[0] == FIRST.format("M", "K", "(read A i j)")


def test_the_array_with_the_most_of_the_axes_is_first() -> None:
    for e in ("(+ (aref x j) (aref B p j))", "(+ (aref B p j) (aref x j))"):
        for axes, index in (("N K", "j p"), ("K N", "p j")):
            found = definitions(scratch(axes, index, e) + SUM.format(f"(* (aref A i p) (aref t {index}))"))
            assert found[0].startswith("(define v0 (compute f32 ((i K) (j N))")


def test_the_order_of_a_value_that_is_read() -> None:
    """Of the sum of columns that depends on a map with an order of its own."""
    for axes, index in (("K N", "p j"), ("N K", "j p")):
        body = scratch(axes, index, "(aref B p j)")
        body += f"(local u f32 (N K) scratch) (for j 0 N 1 serial (for p 0 K 1 serial (setf (aref u j p) (exp (+ (aref t {index}) (aref t {index}))))))"
        body += f"(for j 0 N 1 serial (for p 0 K 1 serial (incf (aref y j) (aref t {index})))) " + SUM.format("(* (aref A i p) (aref u j p))")
        found = definitions(body)
        assert found[0] == FIRST.format("K", "N", "(read B i j)")
        assert any(d.startswith("(define") and "compute f32 ((i K) (j N)) (exp (+ (read v0 i j) (read v0 i j)))" in d for d in found)


def values(inputs: str, outputs: str, *lines: str, lang: str = "lisp") -> list[str]:
    """The values of a spec over arrays."""
    text = f'[composite]\nname = "T"\ninputs = [{inputs}]\noutputs = [{outputs}]\n[implementation]\nlang = "{lang}"\ncode = """\n' + "\n".join(lines) + '"""\n'
    return [" ".join(str(d).split()) for d in values_of(SpecText("t.toml", text, "toml")).definitions]


@pytest.mark.parametrize("order", ["XHWR", "WRXH", "RHWX"])
def test_the_rows_of_a_batch_are_before_those_of_weights(order: str) -> None:
    """Of what is read, the array with the most axes has them: no output tells their order, which is that of both products."""
    arrays = {"X": '"X{float}[B T P]"', "H": '"H{float}[B Q]"', "W": '"W{float}[G P]"', "R": '"R{float}[G Q]"'}
    code = "U = np.tanh(X[:, 0, :] @ W.T + H @ R.T)", "return U.sum(axis=0) * U.max()"
    found = values(", ".join(arrays[name] for name in order), '"Y{float}[G]"', *code, lang="python")
    assert [d[d.index("((i"):][:15] for d in found if "(read X" in d or "(read H" in d] == ["((i B) (j G)) ("] * 2


@pytest.mark.parametrize(("declared", "index"), [("N C H W", "n c h w"), ("N H W C", "n h w c"), ("H C W N", "h c w n")])
def test_the_image_of_a_convolution_has_channels_before_lines(declared: str, index: str) -> None:
    """The columns of the contraction are last, its sums before them; although X[n, c, h, w] F[o, c] would make the channels of Z its last axis."""
    z = dict(zip("nchw", ("n", "c", "(+ h i)", "(+ w j)"), strict=True))
    window = " ".join([z[name] for name in index.split()])
    found = values('"X{float}[N C H W]", "F{float}[C C]", "G{float}[O C 3 3]"', '"Y{float}[N O (- H 2) (- W 2)]"', f"(array Z float ({declared}))",
                   f"(dotimes (n N) (dotimes (o C) (dotimes (h H) (dotimes (w W) (setf (aref Z {index.replace('c', 'o')}) 0.0)"
                   f"(dotimes (c C) (incf (aref Z {index.replace('c', 'o')}) (* (aref X n c h w) (aref F o c))))))))",
                   "(dotimes (n N) (dotimes (o O) (dotimes (h (- H 2)) (dotimes (w (- W 2)) (setf (aref Y n o h w) 0.0)"
                   f"(dotimes (c C) (dotimes (i 3) (dotimes (j 3) (incf (aref Y n o h w) (* (aref Z {window}) (aref G o c i j))))))))))")
    assert found[0].startswith("(define v0 (reduce f32 ((i N) (j C) (k H) (l W)) ((p C))")


@pytest.mark.parametrize(("declared", "index"), [("M K", "i p"), ("K M", "p i")])
def test_a_row_operand_has_the_sum_last_and_a_column_operand_first(declared: str, index: str) -> None:
    made = f"(array t float ({declared})) (dotimes (p K) (dotimes (i M) (setf (aref t {index}) (exp (+ (aref u p) (aref v i))))))"
    sums = "(dotimes (i {m}) (dotimes (j {n}) (setf (aref Y i j) 0.0) (dotimes (p K) (incf (aref Y i j) (* (aref A {a}) (aref t {t}))))))"
    rows = values('"u{float}[K]", "v{float}[M]", "A{float}[K N]"', '"Y{float}[M N]"', made, sums.format(m="M", n="N", a="p j", t=index))
    columns = values('"u{float}[K]", "v{float}[M]", "A{float}[N K]"', '"Y{float}[N M]"', made, sums.format(m="N", n="M", a="i p", t=index.replace("i", "j")))
    assert rows[0].startswith("(define v0 (compute f32 ((i M) (j K))")
    assert columns[0].startswith("(define v0 (compute f32 ((i K) (j M))")


@pytest.mark.parametrize("declared", ["M N", "N M"])
def test_what_sums_of_rows_read_has_the_order_in_which_it_reads(declared: str) -> None:
    index = "i j" if declared == "M N" else "j i"
    found = values('"X{float}[M N]"', '"Y{float}[M]", "Z{float}[M]"', f"(array t float ({declared})) (dotimes (i M) (dotimes (j N) (setf (aref t {index}) (exp (aref X i j)))))",
                   f"(dotimes (i M) (setf (aref Y i) 0.0) (dotimes (j N) (incf (aref Y i) (aref t {index}))))",
                   f"(dotimes (i M) (setf (aref Z i) 0.0) (dotimes (j N) (incf (aref Z i) (* (aref t {index}) (aref t {index})))))")
    assert found[0] == FIRST.format("M", "N", "(read X i j)")


@pytest.mark.parametrize(("declared", "index"), [("M P Q", "i p q"), ("Q M P", "q i p")])
def test_two_sums_of_an_operand_are_in_the_order_in_which_it_reads(declared: str, index: str) -> None:
    found = values('"X{float}[Q P M]", "W{float}[P Q N]"', '"Y{float}[M N]"',
                   f"(array t float ({declared})) (dotimes (i M) (dotimes (p P) (dotimes (q Q) (setf (aref t {index}) (exp (aref X q p i))))))",
                   f"(dotimes (i M) (dotimes (j N) (setf (aref Y i j) 0.0) (dotimes (p P) (dotimes (q Q) (incf (aref Y i j) (* (aref t {index}) (aref W p q j)))))))")
    assert found[0].startswith("(define v0 (compute f32 ((i M) (j Q) (k P)) (exp (read X j k i))")


@pytest.mark.parametrize(("declared", "index"), [("M B K", "i b p"), ("K B M", "p b i")])
def test_a_batch_is_first_unless_it_is_contiguous(declared: str, index: str) -> None:
    made = f"(array t float ({declared})) (dotimes (b B) (dotimes (p K) (dotimes (i M) (setf (aref t {index}) (exp (aref X i b p))))))"
    sums = "(dotimes (b B) (dotimes (i M) (dotimes (j N) (setf (aref Y {y}) 0.0) (dotimes (p K) (incf (aref Y {y}) (* (aref t {t}) (aref W {w})))))))"
    for y, shape, w, shape_of_w, order in (("b i j", "B M N", "b p j", "B K N", "((i B) (j M) (k K))"), ("i b j", "M B N", "b p j", "B K N", "((i B) (j M) (k K))"),
                                           ("i j b", "M N B", "p j b", "K N B", "((i M) (j B) (k K))")):
        found = values(f'"X{{float}}[M B K]", "W{{float}}[{shape_of_w}]"', f'"Y{{float}}[{shape}]"', made, sums.format(y=y, t=index, w=w))
        assert found[0].startswith(f"(define v0 (compute f32 {order}")


@pytest.mark.parametrize(("declared", "index"), [("B K N", "b p j"), ("K B N", "p b j")])
def test_a_batch_beside_the_columns_is_first(declared: str, index: str) -> None:
    found = values('"A{float}[B M K]", "X{float}[K B N]"', '"Y{float}[M B N]"', f"(array t float ({declared}))",
                   f"(dotimes (b B) (dotimes (p K) (dotimes (j N) (setf (aref t {index}) (exp (aref X p b j))))))",
                   f"(dotimes (b B) (dotimes (i M) (dotimes (j N) (setf (aref Y i b j) 0.0) (dotimes (p K) (incf (aref Y i b j) (* (aref A b i p) (aref t {index})))))))")
    assert found[0].startswith("(define v0 (compute f32 ((i B) (j K) (k N))")


def test_maps_that_disagree() -> None:
    """One output wants rows, one wants columns: as in the array that is read."""
    for axes, index in (("M N", "i j"), ("N M", "j i")):
        found = values('"X{float}[M N]"', '"Y{float}[M N]", "Z{float}[N M]"', f"(array t float ({axes}))",
                       f"(dotimes (i M) (dotimes (j N) (setf (aref t {index}) (exp (aref X i j)))))",
                       f"(dotimes (i M) (dotimes (j N) (setf (aref Y i j) (sin (aref t {index})))))",
                       f"(dotimes (j N) (dotimes (i M) (setf (aref Z j i) (cos (aref t {index})))))")
        assert found[0] == FIRST.format("M", "N", "(read X i j)")


def test_an_output_keeps_its_order() -> None:
    """Also where others have read the value: it is stored once."""
    found = values('"a{float}[M]", "b{float}[N]"', '"V{float}[N]", "Y{float}[M N]", "Z{float}[M N]"', "(array t float (M N))", "(array s float (M))",
                   "(dotimes (i M) (dotimes (j N) (setf (aref Y i j) (* (/ (aref a i) (+ (abs (aref b j)) 1.0)) (aref a i)))))",
                   "(dotimes (j N) (dotimes (i M) (setf (aref Z i j) (max (aref Y i j) 0.5))))",
                   "(dotimes (i M) (dotimes (j N) (setf (aref t i j) (tanh (min (aref Y i j) (sin (aref Y i j)))))))",
                   "(dotimes (i M) (setf (aref s i) 0.0))",
                   "(dotimes (i M) (dotimes (j N) (incf (aref s i) (+ (aref t i j) (aref Y i j)))))",
                   "(dotimes (j N) (setf (aref V j) 0.0))",
                   "(dotimes (j N) (dotimes (i M) (incf (aref V j) (* (aref s i) (aref t i j)))))")
    assert found[0].startswith("(define v0 (compute f32 ((i M) (j N))")
    assert not any("(read v0 j i)" in d for d in found)


ORDERS = [("P 4 8", "p a b"), ("4 8 P", "a b p"), ("8 P 4", "b p a")]


def of_three(declared: str, index: str) -> str:
    """exp of X[b, p, a], stored in another order."""
    return f"(array t float ({declared})) (dotimes (p P) (dotimes (a 4) (dotimes (b 8) (setf (aref t {index}) (exp (aref X b p a))))))"


def placed(index: str, **by: str) -> str:
    return " ".join([by[name] for name in index.split()])


@pytest.mark.parametrize(("declared", "index"), ORDERS)
def test_parts_of_the_columns_have_the_order_of_the_columns(declared: str, index: str) -> None:
    """As in the gradient of weights whose columns are heads and their elements."""
    t = placed(index, p="p", a="(floordiv j 8)", b="(mod j 8)")
    found = values('"X{float}[8 P 4]", "A{float}[P M]"', '"Y{float}[M 32]"', of_three(declared, index),
                   f"(dotimes (i M) (dotimes (j 32) (setf (aref Y i j) 0.0) (dotimes (p P) (incf (aref Y i j) (* (aref A p i) (aref t {t}))))))")
    assert found[0].startswith("(define v0 (compute f32 ((i P) (j 4) (k 8))")


@pytest.mark.parametrize(("declared", "index"), ORDERS)
def test_parts_of_a_sum_have_the_order_of_the_sum(declared: str, index: str) -> None:
    t = placed(index, p="i", a="(floordiv q 8)", b="(mod q 8)")
    found = values('"X{float}[8 P 4]", "W{float}[32 N]"', '"Y{float}[P N]"', of_three(declared, index),
                   f"(dotimes (i P) (dotimes (j N) (setf (aref Y i j) 0.0) (dotimes (q 32) (incf (aref Y i j) (* (aref t {t}) (aref W q j))))))")
    assert found[0].startswith("(define v0 (compute f32 ((i P) (j 4) (k 8))")


@pytest.mark.parametrize(("declared", "index"), [("32 K", "r p"), ("K 32", "p r")])
def test_an_index_of_two_axes_is_one_of_rows(declared: str, index: str) -> None:
    """The logits of a batch of sequences as rows: one product sums their columns, one their rows."""
    made = f"(array t float ({declared})) (dotimes (r 32) (dotimes (p K) (setf (aref t {index}) (exp (aref X {{}})))))"
    rows = "(dotimes (b 4) (dotimes (s 8) (dotimes (j N) (setf (aref Y b s j) 0.0)" \
           f"(dotimes (p K) (incf (aref Y b s j) (* (aref t {placed(index, r='(+ (* 8 b) s)', p='p')}) (aref W p j)))))))"
    sums = "(dotimes (p K) (dotimes (j N) (setf (aref Z p j) 0.0)" \
           f"(dotimes (r 32) (incf (aref Z p j) (* (aref t {placed(index, r='r', p='p')}) (aref V r j))))))"
    one = values('"X{float}[K 32]", "W{float}[K N]"', '"Y{float}[4 8 N]"', made.format("p r"), rows)
    both = values('"X{float}[32 K]", "W{float}[K N]", "V{float}[32 N]"', '"Y{float}[4 8 N]", "Z{float}[K N]"', made.format("r p"), rows, sums)
    assert one[0].startswith("(define v0 (compute f32 ((i 32) (j K))")
    assert both[0].startswith("(define v0 (compute f32 ((i 32) (j K))")


@pytest.mark.parametrize(("declared", "index"), ORDERS)
def test_products_that_disagree(declared: str, index: str) -> None:
    """One product has the heads as its sums, one as its rows: the order with the last axis of the array that is read, where heads are not together."""
    t = placed(index, p="i", a="(floordiv q 8)", b="(mod q 8)")
    u = placed(index, p="p", a="(floordiv i 8)", b="(mod i 8)")
    found = values('"X{float}[4 P 8]", "W{float}[32 N]", "V{float}[P N]"', '"Y{float}[P N]", "Z{float}[32 N]"',
                   of_three(declared, index).replace("(aref X b p a)", "(aref X a p b)"),
                   f"(dotimes (i P) (dotimes (j N) (setf (aref Y i j) 0.0) (dotimes (q 32) (incf (aref Y i j) (* (aref t {t}) (aref W q j))))))",
                   f"(dotimes (i 32) (dotimes (j N) (setf (aref Z i j) 0.0) (dotimes (p P) (incf (aref Z i j) (* (aref t {u}) (aref V p j))))))")
    assert found[0].startswith("(define v0 (compute f32 ((i P) (j 4) (k 8))")


@pytest.mark.parametrize(("declared", "index"), [("16 M", "i j"), ("M 16", "j i")])
def test_an_axis_read_in_parts_is_where_its_last_part_is(declared: str, index: str) -> None:
    """Even and odd elements from two arrays: along these, neighbours in memory are neighbours."""
    made = (f"(array t float ({declared})) (dotimes (i 16) (dotimes (j M) (setf (aref t {index})"
            " (exp (aref X (mod i 2) j (floordiv i 2))))))")
    found = values('"X{float}[2 M 8]"', '"Y{float}[16]", "V{float}[M]"', made,
                   f"(dotimes (i 16) (setf (aref Y i) 0.0) (dotimes (j M) (incf (aref Y i) (aref t {index}))))",
                   f"(dotimes (j M) (setf (aref V j) 0.0) (dotimes (i 16) (incf (aref V j) (aref t {index}))))")
    assert found[0].startswith("(define v0 (compute f32 ((i M) (j 16))")
