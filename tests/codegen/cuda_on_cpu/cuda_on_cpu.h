// CUDA C, run on the CPU: each thread of a block is a fiber, blocks run one after another. A barrier (__syncthreads) hands over to
// the next fiber; one that some threads reach and others do not is reported. Shared memory holds poison when a block begins. There
// are vector types of two and four numbers, and 16-bit floats; there are no warps, shuffles, atomics or matrix instructions.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(n)
#define __shared__ static __attribute__((section("shared_memory")))
#define __align__(n) __attribute__((aligned(n)))

struct dim3 {
  unsigned int x, y, z;
};
inline dim3 blockIdx, threadIdx, blockDim, gridDim;

#define VECTOR(name, T)                                                              \
  struct alignas(2 * sizeof(T)) name##2 { T x, y; };                                 \
  struct alignas(sizeof(T) > 4 ? 16 : 4 * sizeof(T)) name##4 { T x, y, z, w; };      \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }                         \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
VECTOR(char, signed char)
VECTOR(uchar, unsigned char)
VECTOR(short, short)
VECTOR(ushort, unsigned short)
VECTOR(int, int)
VECTOR(uint, unsigned int)
VECTOR(longlong, long long)
VECTOR(ulonglong, unsigned long long)
VECTOR(float, float)
VECTOR(double, double)

template <class To, class From> inline To same_bits(From x) {
  static_assert(sizeof(To) == sizeof(From));
  To out;
  std::memcpy(&out, &x, sizeof out);
  return out;
}
inline float __uint_as_float(unsigned int x) { return same_bits<float>(x); }
inline unsigned int __float_as_uint(float x) { return same_bits<unsigned int>(x); }
inline int __float_as_int(float x) { return same_bits<int>(x); }
inline double __longlong_as_double(long long x) { return same_bits<double>(x); }
inline long long __double_as_longlong(double x) { return same_bits<long long>(x); }

// 16-bit floats

struct __half {
  unsigned short bits;
};
struct __nv_bfloat16 {
  unsigned short bits;
};
inline __half __ushort_as_half(unsigned short x) { return {x}; }
inline unsigned short __half_as_ushort(__half x) { return x.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) { return {x}; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }

// `x` in a format of `precision` bits whose last one is worth 2^least or more, to nearest even.
inline double round_to(double x, int precision, int least) {
  if (x == 0 || x != x || std::isinf(x)) return x;
  int exponent;
  std::frexp(x, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - precision, least));
  const double whole = x / unit, near = std::nearbyint(whole);  // exact, then rounded to even
  return std::copysign(near * unit, x);
}
inline __half __double2half(double x) {
  if (x != x) return {0x7e00};
  const unsigned short sign = std::signbit(x) ? 0x8000 : 0;
  const double r = std::fabs(round_to(x, 11, -24));
  if (r >= 65536.0) return {(unsigned short)(sign | 0x7c00)};
  if (r < 0x1p-14) return {(unsigned short)(sign | (unsigned short)(r * 0x1p24))};
  const unsigned long long bits = same_bits<unsigned long long>(r);
  return {(unsigned short)(sign | ((bits >> 52) - 1008) << 10 | (bits >> 42 & 0x3ff))};
}
inline __half __float2half_rn(float x) { return __double2half(x); }
inline float __half2float(__half h) {
  const int exponent = h.bits >> 10 & 31, mantissa = h.bits & 1023;
  const double sign = h.bits >> 15 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa ? NAN : (float)(sign * INFINITY);
  return (float)(sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24)));
}
inline __nv_bfloat16 __double2bfloat16(double x) {
  if (x != x) return {0x7fc0};
  const double r = round_to(x, 8, -133);
  const float f = std::fabs(r) > 0x1.fep127 ? (float)std::copysign(INFINITY, x) : (float)r;
  return {(unsigned short)(__float_as_uint(f) >> 16)};
}
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __double2bfloat16(x); }
inline float __bfloat162float(__nv_bfloat16 x) { return __uint_as_float((unsigned int)x.bits << 16); }

// a * b + c rounded once: the product is exact in a double, the sum is rounded to odd.
inline double fused(double a, double b, double c) {
  const double p = a * b, s = p + c, v = s - p, e = (p - (s - v)) + (c - v);
  long long bits = same_bits<long long>(s);
  if (e == 0 || e != e || s != s || std::isinf(s) || (bits & 1)) return s;
  return same_bits<double>(bits + ((e < 0) == (s < 0) ? 1 : -1));
}
inline __half __hfma(__half a, __half b, __half c) { return __double2half(fused(__half2float(a), __half2float(b), __half2float(c))); }
inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  return __double2bfloat16(fused(__bfloat162float(a), __bfloat162float(b), __bfloat162float(c)));
}

// Shared memory: all of this library's, which the linker puts between these two; nothing where no kernel has any.
extern "C" char __start_shared_memory[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_shared_memory[] __attribute__((weak, visibility("hidden")));

// What a block must not read: not a number and -1, or else (`large`) great numbers.
inline void poison_shared_memory(bool large) {
  if (__start_shared_memory) std::memset(__start_shared_memory, large ? 0x7f : 0xff, __stop_shared_memory - __start_shared_memory);
}

// Threads

struct Fibers {
  std::vector<ucontext_t> contexts;
  std::vector<char> finished;
  std::vector<std::vector<char>> stacks;
  ucontext_t scheduler;
  unsigned int current = 0;
  std::function<void()> body;
};
inline Fibers fibers;

inline void __syncthreads() { swapcontext(&fibers.contexts[fibers.current], &fibers.scheduler); }

inline void fiber() {
  fibers.body();
  fibers.finished[fibers.current] = 1;
}

// Run one block; `backwards`: the last thread first. Returns 1 if threads met different numbers of barriers.
inline int run_block(dim3 block, bool backwards) {
  const unsigned int n = block.x * block.y * block.z;
  fibers.contexts.resize(n);
  fibers.finished.assign(n, 0);
  fibers.stacks.resize(n);
  for (unsigned int t = 0; t < n; t++) {
    fibers.stacks[t].resize(1 << 16);
    getcontext(&fibers.contexts[t]);
    fibers.contexts[t].uc_stack.ss_sp = fibers.stacks[t].data();
    fibers.contexts[t].uc_stack.ss_size = fibers.stacks[t].size();
    fibers.contexts[t].uc_link = &fibers.scheduler;
    makecontext(&fibers.contexts[t], fiber, 0);
  }
  unsigned int done = 0;
  while (done < n) {
    const unsigned int before = done;
    unsigned int waiting = 0;
    for (unsigned int i = 0; i < n; i++) {
      const unsigned int t = backwards ? n - 1 - i : i;
      if (fibers.finished[t]) continue;
      fibers.current = t;
      threadIdx = {t % block.x, t / block.x % block.y, t / (block.x * block.y)};
      swapcontext(&fibers.scheduler, &fibers.contexts[t]);
      if (fibers.finished[t]) done++;
      else waiting++;
    }
    if (waiting != 0 && done != before) return 1;
    if (waiting != 0 && before != 0) return 1;
  }
  return 0;
}

inline int run_grid(dim3 grid, dim3 block, bool backwards, std::function<void()> body) {
  gridDim = grid;
  blockDim = block;
  fibers.body = body;
  for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
    for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
      for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
      {
        poison_shared_memory(backwards);
        if (run_block(block, backwards)) return 1;
      }
  return 0;
}
