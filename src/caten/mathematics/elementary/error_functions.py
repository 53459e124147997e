"""Error functions: erf, erfc. `a` is the arithmetic; polynomials of our own are least in their greatest error
(Remez)."""
from __future__ import annotations

from ...core.expr import Expr
from .arithmetic import Arithmetic
from .exponential import one_plus, reduced

# erf x / x - 1 in x² for |x| ≤ 1; log erfc(1 + u) in u for 0 ≤ u ≤ 4.95, to 2^-59 of erf
NEAR = (0.1283791670955126, -0.3761263890318375, 0.11283791670954857, -0.026866170645072893, 0.005223977624780847,
        -0.0008548326978741287,
        0.00012055331036870243, -1.4925593506248637e-05, 1.6460972807495446e-06, -1.635002512827963e-07,
        1.465787924740628e-08,
        -1.1365663808176905e-09, 5.9452583453747e-11)
FAR = (-1.8496055099332482, -2.638967514234788, -0.8431072563586772, -0.04156109804179981, 0.010033825374320186,
       -0.0019779025673636918,
       0.0002373224792104563, 2.627788153093003e-05, -2.7159125582021025e-05, 9.608920725873034e-06,
       -2.059795045002181e-06,
       1.4289460753427703e-07, 9.753547690371824e-08, -5.2032450557043426e-08, 1.4909654791698113e-08,
       -2.863621818897279e-09,
       3.6818322932225063e-10, -2.8809572211677287e-11, 1.0388505672375908e-12)
# (log(erfc(x) / t) + x²) / (1 - t) in 2t - 1, t = 1 / (1 + x/2); SHORT in float64 for a result in float32
SCALED = (-1.3435881681133846, 0.001698279841929186, 0.09638489352573405, 0.00259367306334947, -0.01715170566915574,
          0.0004981714462983034,
          0.0040160385543736065, -0.0006755864704569765, -0.0009680800890958092, 0.0003792777371685167,
          0.0001918067415788368,
          -0.00015680055151329862, -1.3993310581947996e-05, 4.950229450243965e-05, -1.0893120665712396e-05,
          -1.063007509693793e-05,
          6.5461507361717945e-06, 6.67433298079755e-07, -1.9684551280688085e-06, 5.220017673862677e-07,
          2.9576358450924666e-07,
          -2.1259047475565688e-07, 7.087280033079345e-09, 3.051832526973994e-08, -7.905394543927506e-09)
SCALED_SHORT = (-1.3435881679230137, 0.0016982752626946832, 0.09638486274488005, 0.0025938707561835653,
                -0.01715097076749024,
                0.0004956561453834209, 0.004009978155220319, -0.000661115874064113, -0.0009464513758619767,
                0.0003359148864023422,
                0.00015838784512693974, -8.8617214054748e-05)


def erf(a: Arithmetic, x: Expr) -> Expr:
    """An odd polynomial near 0, beyond it 1 - e^p(|x|)."""
    t, s = a.magnitude(x), x * x
    if a.dtype == "f64":
        p = a.horner(a.clamp(t, None, 5.95) - 1.0, FAR)
        return a.where(t > 1.0, a.with_sign(a.at(1.0) - _exp_of_negative(a, p), x), a.mad(a.horner(s, NEAR), x, x))
    return _erf_single(a, x, t, s)


def _erf_single(a: Arithmetic, x: Expr, t: Expr, s: Expr) -> Expr:
    """Two polynomials, for |x| up to 475/512 and beyond (N. Juffa)."""
    p = a.mad(a.horner(t, (3.83197126e-4, -1.72853470e-5)), s, a.horner(t, (2.42546219e-2, -3.88396438e-3)))
    for c in (-1.06777877e-1, -6.34846687e-1, -1.28717512e-1):
        p = a.mad(p, t, a.at(c))
    p = a.clamp(a.mad(p, t, a.minus(t)), -80.0, None)
    near = a.mad(a.horner(s, (1.28379166e-1, -3.76125336e-1, 1.12819925e-1, -2.67681349e-2, 4.99119423e-3,
                              -5.96761703e-4)), x, x)
    return a.where(t > 0.927734375, a.with_sign(a.at(1.0) - _exp_of_negative(a, p), x), near)


def _exp_of_negative(a: Arithmetic, p: Expr) -> Expr:
    """e^p for p not above 0 and so large that the result is normal."""
    parts = reduced(a, p, a.bias)
    return one_plus(a, parts.r) * a.power_of_two(a.bits(parts.shifted))


def erfc(a: Arithmetic, x: Expr) -> Expr:
    """t e^(p(t) - x²) for x ≥ 0, 2 less that below."""
    m = a.clamp(a.magnitude(x), None, 10.19 if a.short else 27.3)
    below = m + 2.0
    t = a.at(2.0) / below
    p = a.horner(t + t - 1.0, SCALED_SHORT if a.short else SCALED) * (a.at(1.0) - t)
    if a.short:
        value = t * _exp_of_negative(a, p - m * m)
    else:
        square, square_low = a.two_product(m, m)
        total = p - square
        back = total - p
        lost = (p - (total - back)) - (square + back) - square_low      # Knuth's two-sum
        left = a.mad(t, a.minus(below), a.at(2.0)) - t * (m - (below - 2.0))
        lost = lost + left * a.mad(t, a.at(0.67), a.at(0.5))            # what t lacks, as a factor and in p
        parts = reduced(a, total, 2 * a.bias)
        value = a.scaled(t * one_plus(a, parts.r + (parts.rest + lost)), parts.n, parts.shifted)
    return a.where(x < 0, a.at(2.0) - value, value)
