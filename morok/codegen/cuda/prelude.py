"""CUDA functions that kernels call; a kernel's text contains those that it uses. They are portable C++."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_INLINE: Final = "static __device__ __forceinline__"

# name -> (the functions that it calls, its text)
FUNCTIONS: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "maximum": (
        (),
        f"""\
template <class T> {_INLINE} T maximum(T a, T b) {{
  if (a != a || b != b) return a + b;
  return a > b ? a : b > a ? b : a == T(0) ? a + b : a;  // +0 above -0
}}
""",
    ),
    "minimum": (
        (),
        f"""\
template <class T> {_INLINE} T minimum(T a, T b) {{
  if (a != a || b != b) return a + b;
  return a < b ? a : b < a ? b : a == T(0) ? -(-a - b) : a;  // -0 below +0
}}
""",
    ),
    "saturate": (
        (),
        f"""\
template <class T, class F> {_INLINE} T saturate(F x, F low, F beyond, T least, T greatest) {{
  return x != x ? T(0) : x <= low ? least : x >= beyond ? greatest : T(x);
}}
""",
    ),
    "sign_of": (
        (),
        f"""\
template <class T> {_INLINE} T sign_of(T x) {{
  return x > T(0) ? T(1) : x < T(0) ? T(-1) : x;
}}
""",
    ),
    "integer_power": (
        (),
        f"""\
template <class U> {_INLINE} U integer_power(U x, U n) {{
  U result = 1;
  for (; n != 0; n >>= 1, x *= x)
    if (n & 1) result *= x;
  return result;
}}
""",
    ),
    "threefry": (
        (),
        f"""\
{_INLINE} unsigned int rotate(unsigned int x, int r) {{ return x << r | x >> (32 - r); }}
{_INLINE} unsigned long long threefry(unsigned long long counter, unsigned long long key) {{
  // Threefry-2x32, 20 rounds (Salmon et al. 2011)
  const int rotations[8] = {{13, 15, 26, 6, 17, 29, 16, 24}};
  const unsigned int k0 = (unsigned int)key, k1 = (unsigned int)(key >> 32);
  const unsigned int keys[3] = {{k0, k1, k0 ^ k1 ^ 0x1bd11bdau}};
  unsigned int x0 = (unsigned int)counter + k0, x1 = (unsigned int)(counter >> 32) + k1;
  #pragma unroll
  for (int i = 0; i < 20; i++) {{
    x0 += x1;
    x1 = rotate(x1, rotations[i % 8]) ^ x0;
    if (i % 4 == 3) {{
      const int s = i / 4 + 1;
      x0 += keys[s % 3];
      x1 += keys[(s + 1) % 3] + s;
    }}
  }}
  return (unsigned long long)x1 << 32 | x0;
}}
""",
    ),
    "to_odd": (
        (),
        f"""\
// The double x as a float, its last bit set where anything was lost: rounding the result again rounds x once.
{_INLINE} float to_odd(double x) {{
  const float near = (float)x;
  const double lost = x - (double)near;
  const unsigned int bits = __float_as_uint(near);
  if ((bits & 1) != 0 || !(lost < 0 || lost > 0)) return near;
  const bool inward = (lost < 0) != (bits >> 31 != 0);
  return __uint_as_float(inward ? bits - 1 : bits + 1);
}}
""",
    ),
    "shorten": (
        (),
        f"""\
// A 64-bit integer of which a double loses nothing that rounding to a few bits could see.
{_INLINE} unsigned long long shorten(unsigned long long x) {{
  return x >> 53 == 0 ? x : (x & ~0xfffull) | ((x & 0xfff) != 0 ? 0x800 : 0);
}}
""",
    ),
    "wide_to_double": (
        ("shorten",),
        f"""\
{_INLINE} double wide_to_double(unsigned long long x) {{ return (double)shorten(x); }}
{_INLINE} double wide_to_double(long long x) {{
  return x < 0 ? -(double)shorten(0ull - (unsigned long long)x) : (double)shorten((unsigned long long)x);
}}
""",
    ),
    "float_of_e4m3": (
        (),
        f"""\
{_INLINE} float float_of_e4m3(unsigned char x) {{
  const unsigned int magnitude = x & 0x7f;
  const float value = __uint_as_float(magnitude << 20) * 0x1p120f;
  const float signless = magnitude == 0x7f ? __uint_as_float(0x7fc00000u) : value;
  return x & 0x80 ? -signless : signless;
}}
""",
    ),
    "float_of_e5m2": (
        (),
        f"""\
{_INLINE} float float_of_e5m2(unsigned char x) {{
  const unsigned int magnitude = x & 0x7f;
  const float value = __uint_as_float(magnitude << 21) * 0x1p112f;
  const float signless = magnitude >= 0x7c ? __uint_as_float(0x7f800000u | magnitude << 21) : value;
  return x & 0x80 ? -signless : signless;
}}
""",
    ),
    "e4m3_of": (
        (),
        f"""\
{_INLINE} unsigned char e4m3_of(float x) {{
  const unsigned int bits = __float_as_uint(x), a = bits & 0x7fffffffu;
  const unsigned int small = __float_as_uint(__uint_as_float(a) + 0x1p14f) - 0x46800000u;
  const unsigned int normal = (a - (120u << 23) + 0x7ffffu + (a >> 20 & 1)) >> 20;
  const unsigned int top = a > 0x7f800000u ? 0x7f : a < 0x3c800000u ? small : normal < 0x7f ? normal : 0x7f;
  return (unsigned char)(top | (bits >> 24 & 0x80));
}}
""",
    ),
    "e5m2_of": (
        (),
        f"""\
{_INLINE} unsigned char e5m2_of(float x) {{
  const unsigned int bits = __float_as_uint(x), a = bits & 0x7fffffffu;
  const unsigned int small = __float_as_uint(__uint_as_float(a) + 0x1p7f) - 0x43000000u;
  const unsigned int normal = (a - (112u << 23) + 0xfffffu + (a >> 21 & 1)) >> 21;
  const unsigned int top = a > 0x7f800000u ? 0x7e : a < 0x38800000u ? small : normal < 0x7c ? normal : 0x7c;
  return (unsigned char)(top | (bits >> 24 & 0x80));
}}
""",
    ),
}


def text(names: Iterable[str]) -> str:
    """The text of the functions `names` and of all functions that they call, callees first."""
    out: dict[str, str] = {}
    todo = [(name, False) for name in names]
    while todo:
        name, ready = todo.pop()
        if ready:
            out.setdefault(name, FUNCTIONS[name][1])
        elif name not in out:
            todo.append((name, True))
            todo.extend((callee, False) for callee in FUNCTIONS[name][0])
    return "\n".join(out.values())
