"""Every reason for which a step is refused, with its message."""
from __future__ import annotations

import pytest
from schedule_nets import program

from caten.errors import CatenError
from caten.schedule import script

MATMUL = "(for i 0 M 1 serial (for j 0 K 1 serial (for p 0 N 1 serial (incf (aref C i j) (* (aref A i p) (aref B p j))))))"
ROWS = "(for i 0 M 1 serial (for j 0 N 1 serial (incf (aref w i) (aref A i j))))"
ONE = "(for j 0 N 1 serial (setf (aref v j) (aref u j)))"
BLOCK = "(for i 0 6 1 serial (for j 0 8 1 serial (setf (aref S i j) (aref R j i))))"
COPIED = "(split i 4 pad) (split p 8 min) (reorder io po j pi ii) (stage j A read scratch pi ii)"
FILLED = "(for j 0 N 1 serial (setf (aref t j) (aref A i j)))"
USED = "(for k 0 N 1 serial (incf (aref w i) (aref t k)))"
EIGHT = "(for j 0 8 1 serial (setf (aref R j 0) x))"
PAIR = "(for j 0 N 1 serial (setf (aref v j) (aref u j))) (for k 0 N 1 serial (incf (aref s) (aref v k)))"
STAGES = "(local t f32 (N) scratch) (for j 0 N 1 serial (setf (aref t j) (* x (aref u j)))) (for k 0 N 1 serial (setf (aref v k) (aref t k)))"
BOTH = "(for j 0 N 1 serial (setf (aref v j) x) (incf (aref s) (aref v j)))"



def products(fill: str = "(where (< r N) (aref u r) 0.0)", use: str = "(if (< p N) ((incf (aref P) (* (aref Z p) (aref R p 0)))))", start: str = "0.0",
             end: str = "(incf (aref w i) (aref P))") -> str:
    """A tile Z of u, filled with zeros from N on, and a sum P of products with it."""
    return (f"(for i 0 M 1 serial (local Z f32 (4) stack) (for r 0 4 1 serial (setf (aref Z r) {fill})) (local P f32 () register)"
            f" (setf (aref P) {start}) (for p 0 4 1 serial {use}) {end})")


BLANK = "(for i 0 M 1 serial (setf (aref w i) 0.0))"


def begun(before: str, least: int = 0, hi: str = "M", where: str = "i_2", cond: str = "", around: str = "{}", beside: str = "") -> str:
    """Sums of rows into w, after a nest that may set it to zero."""
    add = f"(incf (aref w {where}) (aref A {where} j))"
    inner = around.format(f"(for j 0 N 1 serial {f'(if {cond} ({add}))' if cond else add})")
    return f"{before} (for i_2 {least} {hi} 1 serial {beside} {inner})"


REFUSALS = (
    # steps that are malformed
    ("E501", "(split q 4)", ONE, "split q: there is no loop 'q'; the loops are: j"),
    ("E501", "(vectorize j) (vectorize j)", EIGHT, "vectorize j: there is no loop 'j'; the loops are: none"),
    ("E502", "(vectorise j)", ONE, "there is no schedule step 'vectorise'"),
    ("E502", "()", ONE, "there is no schedule step ''"),
    ("E503", "(split j)", ONE, "(split j): 1 words do not fit (split LOOP COUNT [cut|min|pad] [NAME] [NAME])"),
    ("E503", "(split j four)", ONE, "(split j four): expected a number, not 'four'"),
    ("E503", "(split j 4 cat)", ONE, "(split j 4 cat): expected one of cut, min, pad, not 'cat'"),
    ("E503", "(split j 4 cut a)", ONE, "(split j 4 cut a): name both loops, the outer and the inner one"),
    ("E503", "(split 7 4)", ONE, "(split 7 4): expected the name of a loop, not '7'"),
    ("E503", "(parallel j j)", ONE, "(parallel j j): 2 words do not fit (parallel LOOP)"),
    ("E503", "(stage j u read pocket)", ONE, "expected one of register, stack, scratch, shared, not 'pocket'"),
    ("E503", "(reorder j)", ONE, "(reorder j): 1 words do not fit (reorder LOOP LOOP LOOP…)"),
    # split
    ("E510", "(split j 0)", ONE, "split j: a tile has at least one iteration, not 0"),
    ("E510", "(split j 4)", "(for j 0 N 2 serial (setf (aref v j) x))", "split j: its step is 2, not 1"),
    ("E510", "(split j 16)", EIGHT, "split j: it has 8 iterations, not one full tile of 16"),
    ("E510", "(split j 4 cut j q)", ONE, "split j: the names j and q must differ and be new to the program"),
    ("E510", "(split j 4 cut q q)", ONE, "split j: the names q and q must differ and be new to the program"),
    ("E510", "(split j 4)", "(for j 0 (cast i64 (aref Q 0)) 1 serial (if (< j N) ((setf (aref Q j) 1:i32))))",
     "split j: its bounds read Q, which its body writes"),
    # reorder
    ("E511", "(reorder i i)", ROWS, "reorder i i: name two or more different loops"),
    ("E511", "(reorder i j)", "(for i 0 M 1 serial (setf (aref w i) x)) (for j 0 N 1 serial (setf (aref v j) x))",
     "reorder i j: the loops are not nested in each other"),
    ("E511", "(reorder p i)", MATMUL, "reorder p i: 'j' lies between them; name it too"),
    ("E511", "(reorder j i)", "(for i 0 M 1 serial (setf (aref w i) 0.0) (for j 0 N 1 serial (incf (aref w i) (aref A i j))))",
     "reorder j i: 'i' holds more than one statement, so the nest is not perfect"),
    ("E511", "(reorder j i)", "(for i 0 M 1 serial (for j i M 1 serial (incf (aref w j) x)))", "reorder j i: the bounds of the loop over j depend on i"),
    ("E511", "(reorder j i)", "(for i 0 N 1 serial (if (< (aref u i) 0.0) ((for j 0 M 1 serial (incf (aref w j) x)))))",
     "reorder j i: the condition (< (aref u i) 0.0) between the loops reads memory"),
    ("E511", "(reorder j i)", "(for i 0 N 1 serial (for j 0 (cast i64 (aref I i)) 1 serial (incf (aref s) x)))",
     "reorder j i: the range of 'j' reads memory"),
    ("E511", "(reorder j i)", "(for i 0 (- M 1) 1 serial (for j 1 N 1 serial (setf (aref X (+ i 1) (- j 1)) (aref X i j))))",
     "which may be the same element"),
    # hoist
    ("E521", "(hoist j)", ONE, "hoist j: the body of 'j' is not under a condition"),
    ("E521", "(hoist j)", "(for j 0 N 1 serial (if (< j 4) ((setf (aref v j) x))))",
     "hoist j: every condition in it changes with its iterations, or reads memory: (< j 4)"),
    ("E521", "(hoist j)", "(for j 0 N 1 serial (if (< (aref s) 1.0) ((incf (aref s) x))))", "or reads memory: (< (aref s) 1.0)"),
    # precompute
    ("E532", "(precompute t)", ONE, "precompute t: there is no tile 't'"),
    ("E532", "(stage i u read stack j) (precompute u_tile)", "(for i 0 M 1 serial (for j 0 8 1 serial (if (< j N) ((incf (aref w i) (aref u j))))))",
     "precompute u_tile: its elements are not all multiplied by the same value"),
    ("E532", "(stage i u read stack j) (precompute u_tile)",
     "(for i 0 M 1 serial (for j 0 8 1 serial (if (< j N) ((incf (aref w i) (* (aref A i j) (aref u j)))))))", "is no scalar of the call"),
    # unroll
    ("E512", "(unroll j)", ONE, "unroll j: its range from 0 to N by 1 is not constant"),
    ("E512", "(unroll j full)", "(for j 0 65 1 serial (incf (aref s) x))", "unroll j: 65 copies of its body are too much text"),
    ("E512", "(parallel j) (unroll j)", EIGHT, "unroll j: the loop is parallel"),
    # vectorize
    ("E513", "(vectorize j)", ONE, "vectorize j: its range from 0 to N by 1 has no constant length"),
    ("E513", "(vectorize j)", "(for j 0 6 1 serial (setf (aref R 0 j) x))", "vectorize j: 6 iterations are not 2, 4, 8 … 64 lanes"),
    ("E513", "(parallel j) (vectorize j)", EIGHT, "vectorize j: the loop is parallel"),
    ("E513", "(vectorize j)", "(for j 0 4 1 serial (setf (aref R (* 2 j) 0) x))", "vectorize j: (aref R (* 2 j) 0) is not contiguous in j"),
    ("E513", "(vectorize j)", "(for j 0 4 1 serial (setf (aref R j j) x))", "vectorize j: (aref R j j) is not contiguous in j"),
    ("E513", "(vectorize j)", "(for j 1 5 1 serial (setf (aref R j 0) (aref R (- j 1) 0)))", "which may be the same element"),
    ("E513", "(vectorize j)", "(for j 0 4 1 serial (setf (aref R j 0) (aref R (mod (* j j) 8) 1)))",
     "gathers: an index is not a linear function of j"),
    ("E513", "(vectorize j)", "(for j 0 4 1 serial (for i 0 (+ j 1) 1 serial (incf (aref R j 0) x)))", "vectorize j: the range of 'i' depends on it"),
    ("E513", "(split j 4) (vectorize ji) (vectorize i)", "(for i 0 2 1 serial (for j 0 4 1 serial (setf (aref R i j) x)))", "is a vector already"),
    ("E513", "(vectorize j)", "(for j 0 4 1 serial (if (< j M) ((incf (aref w j) (aref w 0)))))", "may be the same element"),
    ("E513", "(vectorize j)", "(for j 0 4 1 serial (if (< j M) ((incf (aref R j 0) (aref A 0 0)))))",
     "vectorize j: (aref A 0 0) is read only where the conditions of some lane hold"),
    # parallel
    ("E514", "(parallel i) (parallel j)", "(for i 0 M 1 serial (setf (aref w i) x) (for j 0 N 1 serial (setf (aref X i j) x)))",
     "parallel j: 'i' is parallel already, and one level is all there is"),
    ("E514", "(parallel i) (parallel j)", "(for i 0 M 1 serial (for j 0 (min i N) 1 serial (setf (aref X i j) x)))", "parallel j: 'i' is parallel already"),
    ("E514", "(parallel j) (parallel i)", ROWS.replace("(aref w i)", "(aref X i j)"), "parallel i: 'j' is parallel already"),
    ("E514", "(parallel i) (parallel j)", "(for i 0 M 1 serial (for j 0 (cast i64 (aref Q 0)) 1 serial (setf (aref X i (mod j N)) x)))", "parallel j: 'i' is parallel"),
    ("E514", "(parallel i) (parallel p)", MATMUL, "parallel p: 'i' is parallel already"),
    ("E514", "(parallel j) (parallel j)", ONE, "parallel j: it is parallel already"),
    ("E514", "(parallel j)", ROWS, "parallel j: the loop over j is a reduction: every iteration accumulates into (aref w i)"),
    ("E514", "(parallel j)", "(for j 1 N 1 serial (setf (aref v j) (aref v (- j 1))))", "which may be the same element"),
    # stage
    ("E515", "(stage i u read stack)", ROWS, "stage i u: 'i' does not use it"),
    ("E515", "(stage j v read register j)", "(for j 1 8 1 serial (incf (aref s) (+ (aref R j 0) (aref R (- j 1) 0))))", "stage j v: 'j' does not use it"),
    ("E515", "(stage j R read register j)", "(for j 1 8 1 serial (incf (aref s) (+ (aref R j 0) (aref R (- j 1) 0))))",
     "stage j R: it is used in more than one way: "),
    ("E515", "(stage j w read register)", ROWS, "stage j w: (aref w i) is written inside 'j', use accumulate"),
    ("E515", "(stage j A accumulate scratch j)", ROWS, "stage j A: (aref A i j) is only read inside 'j', use read"),
    ("E515", "(stage j A read register q)", ROWS, "stage j A: 'q' is no loop inside 'j'"),
    ("E515", "(stage i A read scratch j)", ROWS, "stage i A: (aref A i j) moves with 'i', which is no axis of the tile"),
    ("E515", "(stage j A read register j)", ROWS, "stage j A: the length N of 'j' has no constant bound, which a tile in register needs"),
    ("E515", "(stage i s partial stack j i)", "(for i 0 64 1 serial (for j 0 128 1 serial (incf (aref s) x)))",
     "stage i s: its 32768 bytes do not fit on the stack (16384); use scratch"),
    ("E515", "(stage i A read scratch j)", "(for i 0 M 1 serial (for j i N 1 serial (incf (aref w i) (aref A 0 j))))",
     "stage i A: the range of 'j' depends on what is no axis of the tile before it"),
    ("E515", "(stage j A read scratch j)", "(for i 0 M 1 serial (if (<= i N) ((for j i N 1 serial (incf (aref w i) (aref A 0 j))))))",
     "stage j A: the length (- N i) of 'j' changes from iteration to iteration"),
    ("E515", "(stage j R read stack j)", "(for j 0 8 2 serial (incf (aref s) (aref R j 0)))", "stage j R: the step of 'j' is 2, not 1"),
    ("E515", "(stage j R accumulate stack j i)", "(for j 0 4 1 serial (for i 0 4 1 serial (incf (aref R (+ i j) 0) x)))",
     "stage j R: two iterations meet in one element of (aref R (+ i j) 0)"),
    ("E515", "(stage j R accumulate stack j i)", "(for j 0 4 1 serial (for i 0 4 1 serial (incf (aref R i 0) x)))",
     "stage j R: two iterations of 'j' meet in one element of (aref R i 0); use partial"),
    ("E515", "(stage j R partial stack j)", "(for j 0 8 1 serial (setf (aref R 0 0) x))", "stage j R: (aref R 0 0) is not only added to, with one operator, inside 'j'"),
    ("E515", "(stage j R read stack j)", "(for j 0 8 1 serial (incf (aref s) (where (< j M) (aref A j 0) 0.0)))", "stage j R: 'j' does not use it"),
    ("E515", "(stage j A read stack j)", "(for j 0 8 1 serial (incf (aref s) (where (< j M) (where (< 0 N) (aref A j 0) 0.0) 0.0)))",
     "stage j A: (aref A j 0) is not proven to stay inside A for the whole tile"),
    ("E515", "(stage i A read stack i)", "(for i 0 8 1 serial (if (< (aref s) 0.0) ((if (and (< i M) (< 0 (cast i64 (aref I 0)))) ((incf (aref R i 0) (aref A i 0)))))))",
     "stage i A: (aref A i 0) is not proven to stay inside A for the whole tile"),
    ("E515", "(vectorize j) (stage i R read stack i)", "(for i 0 8 1 serial (for j 0 4 1 serial (incf (aref s) (aref R i j))))",
     "is a vector already; stage before vectorize"),
    ("E515", "(stage j u read scratch)", "(for j 0 N 1 serial (incf (aref s) (aref u (cast i64 (aref I j)))))", "the index of (aref u (cast i64 (aref I j))) reads memory"),
    ("E515", "(parallel i) (stage j R accumulate stack j)", "(for i 0 8 1 serial (for j 0 8 1 serial (for p 0 1 1 serial (if (= i (+ j p)) ((incf (aref R j 0) x))))))",
     "would be stored back while other iterations of 'i' write it"),
    ("E515", "(parallel k) (parallel i) (stage j R accumulate stack j)",
     "(for k 0 2 1 serial (for i 0 8 1 serial (for j 0 8 1 serial (for p 0 1 1 serial (if (= i (+ j p)) ((incf (aref R j k) x)))))))",
     "would be stored back while other iterations of 'i' write it"),
    ("E515", "(parallel i) (stage j R partial stack j)", "(for i 0 8 1 serial (for j 0 8 1 serial (for p 0 1 1 serial (if (= i (+ j p)) ((incf (aref R j 0) x))))))",
     "would be stored back while other iterations of 'i' write it"),
    ("E515", "(stage i t accumulate register)", "(for i 0 M 1 serial (local t f32 () register) (setf (aref t) x) (setf (aref w i) (aref t)))",
     "stage i t: it is declared inside 'i'"),
    ("E515", "(stage j u read stack j)", "(for j 0 8 1 serial (let k i64 (mod j N)) (if (< k N) ((incf (aref s) (aref u k)))))",
     "stage j u: (aref u k) moves with 'k', which is no axis of the tile"),
    # prefetch
    ("E503", "(prefetch j u)", ONE, "(prefetch j u): 2 words do not fit (prefetch LOOP BUFFER COUNT [write])"),
    ("E503", "(prefetch j u 4 read)", ONE, "(prefetch j u 4 read): expected one of write, not 'read'"),
    ("E530", "(prefetch j u 0)", ONE, "prefetch j u: a distance is from 1 to 1024 iterations, not 0"),
    ("E530", "(prefetch j u 1025)", ONE, "prefetch j u: a distance is from 1 to 1024 iterations, not 1025"),
    ("E530", "(prefetch j A 4)", ONE, "prefetch j A: no use of A in 'j' moves with it"),
    ("E530", "(prefetch i u 4)", ROWS.replace("(aref A i j)", "(aref u j)"), "prefetch i u: no use of u in 'i' moves with it"),
    ("E530", "(prefetch j t 1)", "(local t f32 (8) register) (for j 0 8 1 serial (setf (aref t j) x))", "prefetch j t: t is in registers, which have no address"),
    ("E530", "(prefetch j u 4)", "(for j 0 N 1 serial (if (and (<= 0:i32 (aref I j)) (< (cast i64 (aref I j)) N)) ((incf (aref s) (aref u (cast i64 (aref I j)))))))",
     "prefetch j u: the index of (aref u (cast i64 (aref I j))) reads memory"),
    ("E530", "(prefetch j R 1)", "(for j 0 8 1 serial (let k i64 (mod j 2)) (setf (aref R k 0) x))",
     "prefetch j R: the index of (aref R k 0) has a name that is given inside 'j'"),
    ("E530", "(prefetch j R 1)", "(for j 0 8 (+ 1 (max 0 (cast i64 (aref Q 0)))) serial (if (< 0 N) ((setf (aref R j 0) x))))",
     "prefetch j R: the step of 'j' reads memory"),
    # prefetch_at
    ("E503", "(prefetch_at j u 4)", ONE, "(prefetch_at j u 4): 3 words do not fit (prefetch_at LOOP LOOP BUFFER COUNT)"),
    ("E530", "(prefetch_at i p A 1)", MATMUL, "prefetch_at i A: 'i' is not inside 'p'"),
    ("E530", "(prefetch_at p p A 1)", MATMUL, "prefetch_at p A: 'p' is not inside 'p'"),
    ("E530", "(prefetch_at p i A 1)", MATMUL, "prefetch_at p A: 'p' reads no copy of A"),
    ("E530", f"{COPIED} (prefetch_at pi io A 0)", MATMUL, "prefetch_at pi A: a distance is from 1 to 1024 iterations, not 0"),
    ("E530", f"{COPIED} (prefetch_at pi io A 1025)", MATMUL, "prefetch_at pi A: a distance is from 1 to 1024 iterations, not 1025"),
    ("E530", f"{COPIED} (prefetch_at pi io B 1)", MATMUL, "prefetch_at pi B: 'pi' reads no copy of B"),
    ("E530", f"{COPIED} (prefetch_at pi_r io A 1)", MATMUL, "prefetch_at pi_r A: 'pi_r' reads no copy of A"),
    ("E530", f"{COPIED} (prefetch_at pi j A 1)", MATMUL, "prefetch_at pi A: 'pi' reads no copy of A"),
    ("E530", f"{COPIED} (prefetch_at j io A 1)", MATMUL, "prefetch_at j A: the length of 'pi' is not constant"),
    ("E530", "(split j 4 min) (reorder i jo p ji) (stage p A read scratch p) (prefetch_at p jo A 1)", MATMUL, "prefetch_at p A: (aref A i p) does not move with 'jo'"),
    ("E530", "(split i 20 pad) (split p 8 pad) (reorder io po j pi ii) (stage j A read scratch pi ii) (prefetch_at j io A 1)", MATMUL,
     "prefetch_at j A: an iteration would ask for more than 16 places"),
    ("E530", f"{COPIED} (vectorize ii) (prefetch_at pi io A 1)", MATMUL.replace("(aref B p j)", "x").replace("(aref C i j)", "(aref w i)"),
     "prefetch_at pi A: 'pi' reads no copy of A"),
    ("E530", "(prefetch_at k i A 1)", f"(for i 0 M 1 serial (local t f32 (N) scratch) {FILLED} {FILLED.replace('j', 'l').replace('A i', 'A 0')} {USED})",
     "prefetch_at k A: 'k' reads more than one copy of A: (aref A i k), (aref A 0 k)"),
    ("E530", "(prefetch_at k i A 1)", f"(for i 0 M 1 serial (local t f32 (N) scratch) (for j 0 N 1 serial (let m i64 (mod i M)) (setf (aref t j) (aref A m j))) {USED})",
     "prefetch_at k A: the index of (aref A m k) has the name 'm', which 'k' does not know"),
    ("E530", "(prefetch_at k i A 1)", f"(for i 0 M (+ 1 (max 0 (cast i64 (aref Q 0)))) serial (local t f32 (N) scratch) {FILLED} {USED})",
     "prefetch_at k A: the step of 'i' reads memory"),
    ("E530", "(prefetch_at k i u 1)", "(for i 0 M 1 serial (local t f32 (N) scratch) (for j 0 N 1 serial (setf (aref t j) (aref u (mod (cast i64 (aref Q j)) N))))"
     f" {USED})", "prefetch_at k u: the index of (aref u (mod (cast i64 (aref Q k)) N)) reads memory"),
    # stream
    ("E531", "(stream j A)", ONE, "stream j A: 'j' does not use it"),
    ("E531", "(stream j v)", ONE, "stream j v: 'j' stores no whole vector to v that is not streamed already; vectorize first"),
    ("E531", "(vectorize j) (stream i S) (stream i S)", "(for i 0 6 1 serial (for j 0 8 1 serial (setf (aref S i j) x)))", "that is not streamed already"),
    ("E531", "(split j 4 pad) (vectorize ji) (stream jo v)", ONE, "'jo' stores no whole vector to v"),
    ("E531", "(split j 4) (vectorize ji) (stream jo v)", "(for j 0 N 1 serial (incf (aref v j) x))",
     "stream jo v: v is read in the nest of 'jo', by (incf (vref v 4 ((* 4 jo))) (splat 4 x))"),
    ("E531", "(vectorize j) (stream q S)", "(for i 0 6 1 serial (for p 0 4 1 serial (incf (aref s) (aref S i p))) (for q 0 4 1 serial (for j 0 8 1 serial (setf (aref S i j) x))))",
     "stream q S: S is read in the nest of 'i', by (incf (aref s) (aref S i p))"),
    ("E531", "(vectorize j) (stream i t)", "(local t f32 (4 8) stack) (for i 0 4 1 serial (for j 0 8 1 serial (setf (aref t i j) x)))",
     "stream i t: t is a small array of the kernel's own, which stays in the caches"),
    ("E515", "(stage j w tree scratch i)", "(for j 0 N 1 serial (for i 0 M 1 serial (incf (aref w i) (aref A i j))))",
     "stage j w: every loop of the tile moves (aref w i), so there is nothing to combine; use partial"),
    ("E515", "(stage j s tree scratch j)", "(for j 0 N 1 serial (incf (aref s) (aref u j)))",
     "stage j s: the length N of 'j' is not constant, which a tree needs"),
    ("E515", "(split j 4 min) (stage ji s tree stack ji)", "(for j 0 N 1 serial (incf (aref s) (aref u j)))", "of 'ji' is not constant, which a tree needs"),
    ("E515", "(stage j s tree stack j)", "(for j 0 8 1 serial (if (< j N) ((incf (aref s) (aref u j)))))",
     "stage j s: its conditions speak of 'j', so that some parts may not exist; use partial"),
    # contract
    ("E516", "(contract j)", ONE, "contract j: there is no product of floats that is added to something"),
    # transpose
    ("E517", "(transpose i j)", "(for i 0 6 1 serial (for j 0 8 1 serial (incf (aref S i j) (aref R j i))))", "'i' does not hold just 'j', and that just a copy"),
    ("E517", "(transpose j i)", BLOCK, "transpose j i: 'j' does not hold just 'i'"),
    ("E517", "(transpose i i)", BLOCK, "transpose i i: 'i' does not hold just 'i'"),
    ("E517", "(transpose i j)", "(for i 0 6 1 parallel (for j 0 8 1 serial (setf (aref S i j) (aref R j i))))", "transpose i j: 'i' is parallel"),
    ("E517", "(transpose i j)", "(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref T j i) (aref A i j))))",
     "transpose i j: the range of 'i' from 0 to M by 1 has no constant length; split it first"),
    ("E517", "(transpose i j)", "(for i 0 5 1 serial (for j 0 8 1 serial (setf (aref S i j) (aref R j i))))",
     "transpose i j: the 5 iterations of 'i' are not 2, 4, 6 … 64"),
    ("E517", "(transpose i j)", "(for i 0 4 1 serial (for j 0 6 1 serial (setf (aref R i j) (aref R (+ i 4) j))))", "transpose i j: R is copied into itself"),
    ("E517", "(transpose i j)", "(for i 0 4 1 serial (for j i (+ i 4) 1 serial (setf (aref S i j) (aref R j i))))", "the range of 'j' depends on 'i'"),
    ("E517", "(transpose i j)", "(for i 0 6 1 serial (for j 0 6 1 serial (setf (aref S i j) (aref R i j))))",
     "transpose i j: (aref R i j) is not contiguous in one of the loops and (aref S i j) in the other"),
    ("E517", "(transpose i j)", "(for i 0 4 1 serial (for j 0 4 1 serial (setf (aref S i j) (aref R (+ i j) i))))",
     "transpose i j: 'i' does not move (aref R (+ i j) i) by one along one axis"),
    ("E517", "(transpose i j)", "(for i 0 4 1 serial (for j 0 4 1 serial (setf (aref S i (- 3 j)) (aref R j i))))", "'j' does not move (aref S i (- 3 j)) by one"),
    ("E517", "(transpose i j)", "(for i 0 4 1 serial (for j 0 4 1 serial (if (< (aref I 0) 4:i32) ((setf (aref S i j) (aref R j i))))))", "'i' does not hold just 'j'"),
    ("E517", "(transpose i j)", "(local c c128 (4 4) stack) (local d c128 (4 4) stack) (for i 0 4 1 serial (for j 0 4 1 serial (setf (aref d i j) (aref c j i))))",
     "transpose i j: the elements of d have more than 8 bytes"),
    # specialize
    ("E503", "(specialize j)", ONE, "(specialize j): 1 words do not fit (specialize LOOP CONDITION [NAME])"),
    ("E503", "(split j (4))", ONE, "(split j (4)): expected a word, not (4)"),
    ("E520", "(specialize j (< N R))", ONE, "specialize j (< N R): 'R' is no size, scalar or loop there; these are: M, N, K, x"),
    ("E520", "(specialize j (< i 4))", "(for j 0 N 1 serial (for i 0 M 1 serial (incf (aref v j) x)))", "'i' is no size, scalar or loop there"),
    ("E520", "(specialize j (< j 4))", ONE, "'j' is no size, scalar or loop there"),
    ("E520", "(specialize j (< N 4.0))", ONE, "specialize j (< N 4.0): (< N 4.0) has operands of different types: i64, f32"),
    ("E520", "(specialize j (+ N 4))", ONE, "specialize j (+ N 4): (+ N 4) is a value of type i64, not a condition"),
    ("E520", "(specialize j N)", ONE, "N is a value of type i64, not a condition"),
    ("E520", "(specialize j (and N M))", ONE, "(and N M) is a value of type i64"),
    ("E520", "(specialize j (not x))", ONE, "(not x): 'not' is not defined on f32"),
    ("E520", "(specialize j (< (aref u 0) 0.0))", ONE, "(< (aref u 0) 0.0) is more than operators, numbers and names"),
    ("E520", "(specialize j (< N))", ONE, "(< …) takes 2 operands, not 1"),
    ("E520", "(specialize j (smaller N 4))", ONE, "unknown head 'smaller'"),
    ("E520", "(specialize j (<= 0 N))", ONE, "specialize j (<= 0 N): the condition always holds there"),
    ("E520", "(specialize j (< N 4)) (specialize js (= N 5))", ONE, "specialize js (= N 5): the condition never holds there"),
    # fuse
    ("E522", "(fuse i j)", "(for i 0 M 1 serial (setf (aref w i) 0.0) (for j 0 N 1 serial (incf (aref w i) (aref A i j))))", "fuse i j: 'i' holds more than 'j'"),
    ("E522", "(fuse i p)", MATMUL, "fuse i p: 'p' is not directly inside 'i'"),
    ("E522", "(fuse j i)", ROWS, "fuse j i: 'i' is not directly inside 'j'"),
    ("E522", "(fuse i j)", "(for i 0 M 1 serial (for j i M 1 serial (incf (aref w j) x)))", "fuse i j: the range of 'j' depends on 'i'"),
    ("E522", "(fuse i j)", "(for i 0 M 1 serial (for j 0 N 2 serial (incf (aref w i) x)))", "fuse i j: the step of 'j' is 2, not 1"),
    ("E522", "(fuse i j)", "(for i 0 M 1 serial (for j 0 (cast i64 (aref Q 0)) 1 serial (if (< j N) ((setf (aref Q j) 1:i32)))))", "the range of 'j' reads memory"),
    ("E522", "(fuse i j)", "(for i 0 (floordiv K 2) 1 serial (for j 0 K 1 serial (incf (aref s) x)))",
     "fuse i j: the number of iterations, (floordiv K 2) · K, is not known to be below 2^63"),
    ("E522", "(fuse i j N)", ROWS, "fuse i j: the name N must be new to the program"),
    ("E522", "(parallel i) (fuse i j)", ROWS, "fuse i j: one of them is parallel, and the other may not be: the loop over j is a reduction"),
    # merge
    ("E523", "(merge i j)", ROWS, "merge i j: 'j' is not the statement after 'i'"),
    ("E523", "(merge k j)", PAIR, "merge k j: 'j' is not the statement after 'k'"),
    ("E523", "(merge j k)", PAIR.replace("k 0 N", "k 1 N"), "merge j k: the loops over j and k have different bounds"),
    ("E523", "(merge j k)", PAIR.replace("(aref v k)", "(aref v (- (- N k) 1))"),
     "merge j k: one iteration of j and k reads (aref v (- (- N j) 1)), and a later one writes (aref v j), which may be the same element"),
    ("E523", "(parallel j) (merge j k)", "(for j 0 N 1 serial (setf (aref v j) x)) (for k 0 N 1 serial (incf (aref s) x))",
     "merge j k: one of them is parallel, and both together may not be: the loop over j is a reduction"),
    # fission
    ("E524", "(fission i q)", ROWS, "fission i q: 'q' is no loop inside 'i'"),
    ("E524", "(fission i j)", ROWS, "fission i j: 'i' holds 1 statements: one part of it would be empty"),
    ("E524", "(fission i 2)", ROWS, "one part of it would be empty"),
    ("E524", "(fission i 0)", ROWS, "one part of it would be empty"),
    ("E524", "(fission j 1 N)", BOTH, "fission j 1: the name N must be new to the program"),
    ("E524", "(fission j 1)", "(for j 1 N 1 serial (setf (aref v j) (cast f32 (aref Q (- j 1)))) (setf (aref Q j) 1:i32))",
     "fission j 1: one iteration of j writes (aref Q j), and a later one reads (aref Q (- j 1)), which may be the same element"),
    ("E524", "(fission j 2)", "(for j 0 N 1 serial (local t f32 () register) (setf (aref t) x) (setf (aref v j) (aref t)))",
     "fission j 2: 't' of the first part of the loop over j is used in the second part"),
    ("E524", "(fission j 2)", "(for j 0 N 1 serial (let y f32 (aref v j)) (setf (aref v j) x) (setf (aref Q j) (cast i32 y)))",
     "fission j 2: 'y' of the first part of the loop over j is used in the second part"),
    ("E503", "(fission i j.k)", ROWS, "(fission i j.k): expected the name of a loop, not 'j.k'"),
    # pad
    ("E527", "(pad j 1)", ONE, "pad j 1: 1 divides every number of iterations"),
    ("E527", "(pad j 4)", EIGHT, "pad j 4: its number of iterations, 8, is a multiple already"),
    ("E527", "(pad j 4) (pad j 2)", ONE, "is a multiple already"),
    ("E527", "(pad j 4)", "(for j 0 N 2 serial (setf (aref v j) x))", "pad j 4: its step is 2, not 1"),
    ("E527", "(pad j 4)", "(for j 0 (cast i64 (aref Q 0)) 1 serial (if (< j N) ((setf (aref Q j) 1:i32))))", "pad j 4: its range reads memory"),
    # begin
    ("E515", "(stage j w begin register)", begun(""), "stage j w: nothing before sets w to 0.0; use partial"),
    ("E515", "(stage j w begin register)", begun("(for i 0 M 1 serial (setf (aref w i) 1.0))"), "what uses w before does not set all of it to 0.0"),
    ("E515", "(stage j w begin register)", begun("(for i 1 M 1 serial (setf (aref w i) 0.0))"), "what uses w before does not set all of it to 0.0"),
    ("E515", "(stage j w begin register)", begun(f"{BLANK} (for l 0 M 1 serial (setf (aref v 0) (aref w l)))"), "what uses w before does not set all of it"),
    ("E515", "(stage j w begin register)", begun(f"(if (< x 1.0) ({BLANK}))"), "what uses w before does not set all of it to 0.0"),
    ("E515", "(stage j w begin register)", begun(BLANK, least=1), "stage j w: 'i_2' does not count from 0; use partial"),
    ("E515", "(stage j w begin register)", begun(BLANK, where="(- (- M 1) i_2)"), "(- (- M 1) i_2) is not counted by digits"),
    ("E515", "(stage j w begin register)", begun(BLANK, hi="(- M 1)"), "'i_2' does not reach all elements"),
    ("E515", "(stage j w begin register)", begun(BLANK, around="(if (< (* 2 i_2) M) ({}))"), "'j' runs only where (< (* 2 i_2) M)"),
    ("E515", "(stage j w begin register)", begun(BLANK, beside="(setf (aref v 0) (aref w i_2))"), "w is also used outside of 'j'"),
    # flatten
    ("E533", "(flatten Z)", ROWS, "flatten Z: there is no local array 'Z'; these are: none"),
    ("E533", "(flatten w)", ROWS, "flatten w: (buffer w f32 (M) (0) inout) has fewer than two axes"),
    ("E533", "(flatten A 1)", ROWS, "flatten A 1: (buffer A f32 (M N) (0 1) in) has no two axes from 1 on"),
    ("E533", "(stage i w accumulate scratch i) (flatten w_tile)", ROWS, "flatten w_tile: (local w_tile f32 (M) scratch) has fewer than two axes"),
    ("E533", "(stage i R read stack i j) (vectorize i) (flatten R_tile)", "(for i 0 8 1 serial (for j 0 6 1 serial (incf (aref S j i) (aref R i j))))",
     "is a vector along another axis than the last"),
    # unguard
    ("E529", "(unguard i u)", products(), "unguard i u: 'i' holds no tile of that name"),
    ("E529", "(unguard i P)", products(), "unguard i P: it is not filled by one nest and read by one nest after it"),
    ("E529", "(unguard i Z)", products(use="(if (< p N) ((incf (aref P) (* (aref Z p) (aref Z p)))))"), "unguard i Z: it is not read by one accumulation alone"),
    ("E529", "(unguard i Z)", products(use="(if (< p N) ((incf (aref P) (+ (aref Z p) (aref R p 0)))))"),
     "unguard i Z: (aref P) does not take products of the tile and one other element"),
    ("E529", "(unguard i Z)", products(use="(if (< p N) ((incf (aref P) (* (aref Z p) (aref R p 0)) max)))"), "does not take products"),
    ("E529", "(unguard i Z)", products(use="(if (< p N) ((incf (aref w i) (* (aref Z p) (aref R p 0)))))"),
     "unguard i Z: (aref w i) is no sum that starts from zero; stage it as partial"),
    ("E529", "(unguard i Z)", products(start="1.0"), "unguard i Z: (aref P) is no sum that starts from zero"),
    ("E529", "(unguard i Z)", products(start="-0.0"), "unguard i Z: (aref P) is no sum that starts from zero"),
    ("E529", "(unguard i Z)", products(end="(setf (aref R 0 0) (aref P))"), "unguard i Z: (aref R p 0) is written inside 'i'"),
    ("E529", "(unguard i Z)", products(fill="(where (< r N) (aref u r) 1.0)"), "unguard i Z: around its products there is no condition that it holds zeros for"),
    ("E529", "(unguard i Z)", products(fill="(where (< r M) (aref R r 1) 0.0)"), "around its products there is no condition"),
    ("E529", "(unguard i Z)", products().replace("(for r 0 4", "(for r 1 4"), "around its products there is no condition"),
    ("E529", "(unguard i Z)", products(use="(if (< p N) ((incf (aref P) (* (aref Z (- 3 p)) (aref R p 0)))))"), "around its products there is no condition"),
    ("E529", "(unguard i Z)", products(use="(if (< p N) ((incf (aref P) (* (aref Z p) (aref v p)))))"),
     "unguard i Z: (aref v p) is not proven to stay inside v without the conditions"),
    ("E529", "(unguard i Z)", products(use="(let q i64 p) (if (< p N) ((incf (aref P) (* (aref Z p) (aref R q 0)))))"),
     "unguard i Z: what is read of (aref R q 0) does not stay the same in 'i'"),
    # widen
    ("E528", "(widen A 4)", ROWS, "widen A 4: there is no local array 'A'; these are: none"),
    ("E528", "(stage i w accumulate scratch i) (widen w_tile 4)", ROWS, "widen w_tile 4: (local w_tile f32 (M) scratch) has no rows in memory"),
    ("E528", "(stage i A read scratch i j) (widen A_tile 0)", ROWS, "widen A_tile 0: it adds no cell"),
    ("E528", "(stage i R read register i j) (widen R_tile 4)", "(for i 0 8 1 serial (for j 0 6 1 serial (incf (aref s) (aref R i j))))",
     "widen R_tile 4: (local R_tile f32 (8 6) register) has no rows in memory"),
    # compute_at
    ("E525", "(compute_at q k)", STAGES, "compute_at q k: there is no local array 'q'; these are: t"),
    ("E525", "(compute_at t j)", STAGES, "compute_at t j: it is not read inside 'j' alone"),
    ("E525", "(compute_at t k)", "(local t f32 (N) scratch) (for k 0 N 1 serial (setf (aref t k) x))", "compute_at t k: nothing reads it"),
    ("E525", "(compute_at t k)", "(local t f32 (N) scratch) (for k 0 N 1 serial (setf (aref t k) x) (incf (aref s) (aref t k)))", "nothing reads it but"),
    ("E525", "(compute_at t k)", STAGES + "(for p 0 N 1 serial (setf (aref t p) x))", "compute_at t k: it is set again after it was read"),
    ("E525", "(compute_at t k)", STAGES.replace("(aref u j)", "(aref v j)"), "compute_at t k: it is computed from v, which is written before it is read"),
    ("E525", "(compute_at t k)", STAGES.replace("(setf (aref t j)", "(incf (aref s) x) (setf (aref t j)"), "compute_at t k: what sets it also writes s"),
    ("E525", "(compute_at t k)", STAGES + "(incf (aref s) (aref t 0))".replace("(incf", "(if (< 0 N) ((incf") + "))", "it is not read inside 'k' alone"),
    ("E525", "(compute_at t i)", "(local t f32 (N) scratch) (for j 0 N 1 serial (setf (aref t j) x)) (for i 0 M 1 serial (for k i N 1 serial (incf (aref w i) (aref t k))))",
     "compute_at t i: the part that is read, (- N i) elements along an axis, changes from iteration to iteration"),
    ("E525", "(compute_at t i stack)", "(local t f32 (N) scratch) (for j 0 N 1 serial (setf (aref t j) x)) (for i 0 M 1 serial (for k 0 N 1 serial (incf (aref w i) (aref t k))))",
     "compute_at t i: its part has no constant size, which stack memory needs"),
    ("E525", "(compute_at t k)", STAGES.replace("(aref t k)", "(aref t (- (- N k) 1))").replace("(setf (aref t j)", "(setf (aref t (- (- N j) 1))"),
     "what sets it uses (aref t (- (- N j) 1)), whose indices are not the loops around it one by one"),
    ("E525", "(compute_at t k)", STAGES.replace("(aref t k)", "(+ (aref t k) (aref t (- (- N k) 1)))"), "do not differ by a constant"),
    ("E525", "(compute_at t k)", "(local t f32 (N) scratch) (for j 0 N 1 serial (setf (aref t j) x)) (for k 0 N 1 serial (if (and (<= 0:i32 (aref I k)) (< (cast i64 (aref I k)) N)) ((setf (aref v k) (aref t (cast i64 (aref I k)))))))",
     "the index of (aref t (cast i64 (aref I k))) reads memory"),
    # inline
    ("E526", "(inline u)", STAGES, "inline u: there is no local array 'u'; these are: t"),
    ("E526", "(inline t)", STAGES.replace("(aref u j)", "(aref v j)").replace("(aref t k)", "(aref t (- (- N k) 1))"), "inline t: it is computed from v, which is written before it is read"),
    ("E526", "(inline t)", "(local t f32 (N) scratch) (for j 0 N 1 serial (setf (aref t j) 0.0)) (for i 0 N 1 serial (incf (aref t i) (aref u i))) (for k 0 N 1 serial (setf (aref v k) (aref t k)))",
     "inline t: 2 statements set it"),
    ("E526", "(inline t)", STAGES.replace("(setf (aref t j)", "(setf (aref t j) 1.0) (setf (aref t j)"), "what sets it is more than one store in loops over its axes"),
    ("E526", "(inline t)", STAGES.replace("(setf (aref t j)", "(setf (aref t (- (- N j) 1))"), "is not set once for each iteration of the loops around it"),
    ("E526", "(inline t)", "(local t f32 (N) scratch) (for j 0 N 2 serial (setf (aref t j) x)) (for k 0 N 2 serial (setf (aref v k) (aref t k)))", "another step than 1"),
    ("E526", "(inline t)", STAGES.replace("(for j 0 N", "(for j 1 N"), "inline t: (aref t k) is not proven to be one of the elements that 'j' sets"),
    ("E515", "(fuse i j) (stage ij R accumulate stack ij)", "(for i 0 8 1 serial (for j 0 6 1 serial (incf (aref R i 0) (aref R i 0))))",
     "two iterations of 'ij' meet in one element of (aref R (floordiv ij 6) 0); use partial"),
    # stage … write
    ("E515", "(stage j w write scratch)", ROWS, "stage j w: (aref w i) is not only set inside 'j', use accumulate"),
    ("E515", "(stage j R write stack j)", "(for j 0 8 1 serial (setf (aref R j 0) (+ (aref R j 0) x)))", "is not only set inside 'j', use accumulate"),
    ("E515", "(stage i w write scratch i)", "(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref w i) (aref A i j))))",
     "stage i w: (aref w i) is not set in every iteration of the tile's loops, use accumulate"),
    ("E515", "(stage j R write stack j)", "(for j 0 8 1 serial (if (< (aref s) x) ((setf (aref R j 0) x))))", "is not set in every iteration of the tile's loops"),
)


@pytest.mark.parametrize(("code", "steps", "statements", "message"), REFUSALS, ids=[f"{r[0]} {r[1]} {n}" for n, r in enumerate(REFUSALS)])
def test_refusal(code: str, steps: str, statements: str, message: str) -> None:
    with pytest.raises(CatenError) as caught:
        script.apply(program(statements), script.parse_schedule(f"(schedule {steps})").steps)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, message in diagnostic.message) == (code, True), diagnostic.message
