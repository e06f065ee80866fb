// 2^x, log2 and tanh of vectors.
#pragma once

#include "simd.hpp"

namespace headwise::HEADWISE_ISA_NAME {

constexpr float log2_e = 1.44269504088896341f;
constexpr float ln_2 = 0.69314718055994531f;
constexpr float largest_float = 3.402823466e+38f;

// 2^x: 0 for -inf (and where it would be below the normal numbers, off AVX-512), NaN for NaN. A polynomial of
// degree 6 on [0, 1), fitted for the least relative error (2e-9 before rounding), exactly 1 at 0: a single
// key then has exactly the weight 1.
HEADWISE_INLINE Vector exp2(Vector x) {
#if defined(__AVX512F__)
  const Vector f = _mm512_reduce_ps(x, 0x09);  // x - floor(x); 0 for an infinity
#else
  const Vector high = splat(127.0f);
  x = x > high ? high : x;  // this way round NaN stays
  const Vector clipped = x < splat(-127.0f) ? splat(-127.0f) : x;
  Whole n = __builtin_convertvector(clipped, Whole);
  n += __builtin_convertvector(n, Vector) > clipped;  // true is -1: truncated becomes floor
  const Vector f = clipped - __builtin_convertvector(n, Vector);
#endif
  Vector y = splat(2.1702254889532924e-4f);
  y = fma(y, f, splat(1.2439688434824347e-3f));
  y = fma(y, f, splat(9.678840637207031e-3f));
  y = fma(y, f, splat(5.5483341217041016e-2f));
  y = fma(y, f, splat(0.24022983014583588f));
  y = fma(y, f, splat(0.6931470036506653f));
  y = fma(y, f, splat(1.0f));
#if defined(__AVX512F__)
  return _mm512_scalef_ps(y, x);  // y 2^floor(x)
#else
  const Vector power = as_floats(reinterpret_cast<Whole>(reinterpret_cast<Positive>(n + 127) << 23));
  return select(x < splat(-126.0f), Vector{}, y * power);
#endif
}

// log2 of a normal positive number, in two parts: the exponent, and log(m) = 2 atanh((m - 1) / (m + 1)) of the
// mantissa in [sqrt(1/2), sqrt(2)), of which five terms are enough.
HEADWISE_INLINE Vector log2(Vector x, Vector& whole) {
  const Whole raw = bits_of(x);
  const Whole shifted = raw - 0x3F3504F3;  // the bits of sqrt(1/2)
  const Whole exponent = shifted >> 23;
  const Vector m = as_floats((shifted & 0x7FFFFF) + 0x3F3504F3);
  const Vector s = (m - splat(1.0f)) / (m + splat(1.0f));
  const Vector z = s * s;
  Vector y = splat(1.0f / 9);
  y = fma(y, z, splat(1.0f / 7));
  y = fma(y, z, splat(1.0f / 5));
  y = fma(y, z, splat(1.0f / 3));
  y = fma(y, z, splat(1.0f));
  whole = __builtin_convertvector(exponent, Vector);
  return s * y * splat(2 * log2_e);
}

HEADWISE_INLINE Vector log2(Vector x) {
  Vector whole;
  const Vector part = log2(x, whole);
  return part + whole;
}

// Half a vector, and its numbers as doubles: one register again.
using Narrow = float __attribute__((vector_size(2 * lanes)));
using Doubles = double __attribute__((vector_size(4 * lanes)));

HEADWISE_INLINE Doubles widened(const float* at) {
  Narrow x;
  std::memcpy(&x, at, sizeof x);
  return __builtin_convertvector(x, Doubles);
}

// ln(2) (top + log2(x)), rounded once.
HEADWISE_INLINE Vector natural(Vector top, Vector x) {
  alignas(64) float tops[lanes], wholes[lanes], parts[lanes], sums[lanes];
  Vector whole;
  store(parts, log2(x, whole));
  store(wholes, whole);
  store(tops, top);
  for (int i = 0; i < lanes; i += lanes / 2) {
    const Doubles sum = widened(tops + i) + widened(wholes + i) + widened(parts + i);
    const Narrow rounded = __builtin_convertvector(sum * 0.693147180559945309417, Narrow);
    std::memcpy(sums + i, &rounded, sizeof rounded);
  }
  return load(sums);
}

// tanh(x): a polynomial fitted near 0, where 1 - 2 / (e^2x + 1) would lose digits.
HEADWISE_INLINE Vector tanh(Vector x) {
  const Vector size = as_floats(bits_of(x) & 0x7FFFFFFF);
  const Vector z = x * x;
  Vector y = splat(-6.09634630382061e-3f);
  y = fma(y, z, splat(2.0996833220124245e-2f));
  y = fma(y, z, splat(-5.3850799798965454e-2f));
  y = fma(y, z, splat(0.1333276778459549f));
  y = fma(y, z, splat(-0.333333283662796f));
  const Vector near = fma(y * z, x, x);
  const Vector far = splat(1.0f) - splat(2.0f) / (exp2(size * splat(2 * log2_e)) + splat(1.0f));
  const Vector signed_far = as_floats(bits_of(far) | (bits_of(x) & static_cast<std::int32_t>(0x80000000)));
  return select(size < splat(0.625f), near, signed_far);  // NaN goes by far, and stays
}

}  // namespace headwise::HEADWISE_ISA_NAME
