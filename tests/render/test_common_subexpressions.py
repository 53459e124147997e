"""What the text of a statement over vectors would repeat gets a name first."""
from __future__ import annotations

from caten.core.program import resolve
from caten.core.text import read
from caten.render.cstyle import CStyle

MASK = "(< (ramp 4 0 1) (splat 4 N))"


def doubled(times: int, start: str) -> str:
    for _ in range(times):
        start = f"(+ {start} (* {start} {start}))"
    return start


def rendered(value: str, update: bool = False) -> str:
    store = f"({'incf' if update else 'setf'} (vref Y 4 (0) -1 {MASK}) {value})"
    text = (f"(loop Op (buffer X i32 (N M) (0 1) in) (buffer Y i32 (N) (0) out) (size M) (size N) (kernel main (if (and (= N 3) (< 0 M)) ({store}))))")
    return CStyle().render(resolve(read(text)[0]))


def test_a_long_value_reads_and_computes_each_vector_once() -> None:
    for update in (False, True):
        text = rendered(doubled(6, f"(vref X 4 (0 0) 0 {MASK})"), update)
        body = text[text.index("static void ct_op_main"):].split("CT_API")[0]
        assert body.count("ct_gather_if_i32x4(X") == 1
        assert max(len(line) for line in body.splitlines()) < 200
        assert body.count("const ct_i32x4 part_") == 6
        assert body.index("part_0 =") < body.index("part_1 =") < body.index("ct_store_if_i32x4(Y")


def test_a_short_value_is_left_to_the_c_compiler() -> None:
    assert "part_" not in rendered(doubled(2, f"(vref X 4 (0 0) 0 {MASK})"))


def test_what_a_scalar_condition_chooses_is_computed_where_it_is_chosen() -> None:
    arm = doubled(6, "(vref X 4 (0 0) 0)")
    text = rendered(f"(where (< 4 N) {arm} (splat 4 0:i32))")
    assert "part_" not in text
    assert "?" in text


def test_complex_vectors_are_read_by_their_parts() -> None:
    element = "(vref Z 4 ((* 4 N)) -1)"
    value = doubled(5, f"(hypot (real {element}) (imag {element}))")
    text = CStyle().render(resolve(read(f"(loop Op (buffer Z c64 (M) (0) in) (buffer Y f32 (M) (0) out) (size M) (size N) (kernel main (if (and (<= 0 N) (<= (+ (* 4 N) 4) M)) "
                                        f"((setf (vref Y 4 ((* 4 N))) {value})))))")[0]))
    assert text.count("ct_f32x4 part_") == 5
    assert "c64x4" not in text


def test_scalars_get_names_but_for_what_is_computed_under_a_condition() -> None:
    sums = doubled(6, "(aref X 0 0)")
    for value, parts in ((sums, 5), (f"(where (< 4 N) {sums} 0:i32)", 0), (f"(where (and (< 4 N) (< {sums} 7:i32)) 1:i32 0:i32)", 0),
                         (f"(where (and (< {sums} 7:i32) (< 4 N)) 1:i32 0:i32)", 5)):
        text = CStyle().render(resolve(read(f"(loop Op (buffer X i32 (N M) (0 1) in) (buffer Y i32 (N) (0) out) (size M) (size N) (kernel main (if (and (= N 3) (< 0 M)) "
                                            f"((setf (aref Y 0) {value})))))")[0]))
        assert text.count("const int32_t part_") == parts, value[:30]
