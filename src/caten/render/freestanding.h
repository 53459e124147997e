/* A <math.h> for targets without a C library: functions that are one instruction there, and fmod, fmin, fmax, sin and
 * cos in arithmetic. caten decomposes all others. Names begin with CT_, which names of operators never do. */
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define fabs __builtin_fabs
#define fabsf __builtin_fabsf
#define copysign __builtin_copysign
#define copysignf __builtin_copysignf
#define sqrt __builtin_sqrt
#define sqrtf __builtin_sqrtf
#define floor __builtin_floor
#define floorf __builtin_floorf
#define ceil __builtin_ceil
#define ceilf __builtin_ceilf
#define trunc __builtin_trunc
#define truncf __builtin_truncf
#define rint __builtin_rint
#define rintf __builtin_rintf

static inline double fmax(double a, double b) { return a != a || a < b ? b : a; }
static inline double fmin(double a, double b) { return a != a || b < a ? b : a; }
static inline float fmaxf(float a, float b) { return a != a || a < b ? b : a; }
static inline float fminf(float a, float b) { return a != a || b < a ? b : a; }

static inline uint64_t CT_bits_of(double x) { union { double from; uint64_t to; } u = {x}; return u.to; }
static inline double CT_of_bits(uint64_t x) { union { uint64_t from; double to; } u = {x}; return u.to; }

/* |x| = m * 2^e: gives e, which is -1074 or more, and the whole number m, which has 53 bits unless e is that. */
static inline int CT_parts(double x, uint64_t *m)
{
    const int e = (int)(CT_bits_of(x) >> 52 & 0x7ff);
    *m = (CT_bits_of(x) & 0xfffffffffffff) | (e ? (uint64_t)1 << 52 : 0);
    return (e ? e : 1) - 1075;
}

/* By long division in whole numbers: exact. */
static inline double fmod(double a, double b)
{
    uint64_t rest, by;
    int at = CT_parts(a, &rest);
    const int end = CT_parts(b, &by);
    if (a != a || b != b || fabs(a) == INFINITY || b == 0) return NAN;
    if (fabs(a) < fabs(b)) return a;
    for (; at > end; at--) rest = rest % by << 1;
    const uint64_t scale = end < -1022 ? (uint64_t)1 << (end + 1074) : (uint64_t)(end + 1023) << 52;
    return copysign((double)(rest % by) * CT_of_bits(scale), a);
}

static inline float fmodf(float a, float b) { return (float)fmod(a, b); }

/* The upper and the lower half of a product. */
static inline uint64_t CT_product(uint64_t a, uint64_t b, uint64_t *low)
{
    const uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    const uint64_t middle = ah * bl + (al * bl >> 32), cross = al * bh + (uint32_t)middle;
    *low = a * b;
    return ah * bh + (middle >> 32) + (cross >> 32);
}

/* 64 bits of a number in words, the greatest first, from the bit with this index on. */
static inline uint64_t CT_window(const uint64_t *words, int bit)
{
    return bit % 64 ? words[bit / 64] << bit % 64 | words[bit / 64 + 1] >> (64 - bit % 64) : words[bit / 64];
}

/* 2/pi = 0.… in binary. */
static const uint64_t CT_two_over_pi[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
    0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d,
};

/* Range reduction: x = q * pi/2 + r - less for finite x, with |r| at most pi/4 up to rounding. Returns q, of which only
 * the last two bits are exact. Only a window of the bits of 2/pi is multiplied with x = m * 2^e: the bits before it
 * contribute multiples of 4, the bits after it less than 2^-137, and no double is closer to a multiple of pi/2 than
 * about 2^-62 (Payne and Hanek, Radian Reduction for Trigonometric Functions, 1983). */
static inline int CT_quarters(double x, double *r, double *less)
{
    uint64_t m, p[4], low[3], high[3], lost;
    const int e = CT_parts(x, &m), first = e > 2 ? e - 2 : 0;
    const int point = 64 + e - first;                                       /* bits of the product before the point */
    *r = x;
    *less = 0;
    if (fabs(x) <= 0x1.921fb54442d18p-1) return 0;
    for (int n = 0; n < 3; n++) high[n] = CT_product(m, CT_window(CT_two_over_pi, first + 64 * n), &low[n]);
    p[3] = low[2];
    p[2] = high[2] + low[1];
    p[1] = high[1] + low[0] + (p[2] < low[1]);
    p[0] = high[0] + (p[1] < low[0] || (p[1] == low[0] && p[2] < low[1]));
    int q = (int)(CT_window(p, point - 2) >> 62);
    uint64_t above = CT_window(p, point), below = CT_window(p, point + 64);     /* the fraction, in units of 2^-128 */
    const int up = (int)(above >> 63);
    if (up) {                                                                   /* the next multiple is nearer */
        q++;
        below = -below;
        above = ~above + !below;
    }
    const int zeros = __builtin_clzll(above);
    if (zeros) {
        above = above << zeros | below >> (64 - zeros);
        below <<= zeros;
    }
    uint64_t tail, angle = CT_product(above, 0xc90fdaa22168c234, &tail);        /* times pi/2, in units of 2^-127 */
    const uint64_t more[] = {CT_product(above, 0xc4c6628b80dc1cd1, &lost),
                             CT_product(below, 0xc90fdaa22168c234, &lost)};
    for (int n = 0; n < 2; n++) {
        tail += more[n];
        angle += tail < more[n];
    }
    const double scale = CT_of_bits((uint64_t)(1023 - zeros) << 52);
    const int negative = up != (x < 0);
    *r = (double)(angle >> 11) * 0x1p-52 * (negative ? -scale : scale);
    *less = (double)((angle & 0x7ff) << 53 | tail >> 11) * 0x1p-116 * (negative ? scale : -scale);
    return x < 0 ? -q : q;
}

/* sin(x + quarter * pi/2), by polynomials in r. */
static inline double CT_circular(double x, int quarter)
{
    double r, less;
    if (x != x || fabs(x) == INFINITY) return NAN;
    const int q = CT_quarters(x, &r, &less) + quarter;
    const double z = r * r, half = 0.5 * z, first = 1.0 - half;
    double s = 2.505075114534561e-08 + z * -1.589630499789438e-10;
    double c = 2.0875700724826513e-09 + z * -1.1358445269448647e-11;
    s = 0.00019841269829755457 + z * (-2.7557313659040157e-06 + z * s);
    c = 2.4801587288947063e-05 + z * (-2.7557314191850896e-07 + z * c);
    s = 0.16666666666666632 + z * (-0.008333333333322418 + z * s);
    c = 0.041666666666666595 + z * (-0.0013888888888873303 + z * c);
    s *= z * r;
    c *= z * z;
    const double value = q & 1 ? first + (((1.0 - first) - half) + ((r - s) * less + c)) : r - ((first + c) * less + s);
    return q & 2 ? -value : value;
}

static inline double sin(double x) { return CT_circular(x, 0); }
static inline double cos(double x) { return CT_circular(x, 1); }
static inline float sinf(float x) { return (float)CT_circular(x, 0); }
static inline float cosf(float x) { return (float)CT_circular(x, 1); }
