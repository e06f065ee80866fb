// Vectors of floats, one width per instruction set, by the vector extensions of GCC and Clang.
//
// Compiled once per instruction set, each in its own namespace (HEADWISE_ISA_NAME). No inline function of the
// standard library may be used in these parts: the linker keeps one copy of it, and it could be the copy that
// was compiled for a CPU which this one is not.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include "attention.hpp"

#define HEADWISE_INLINE inline __attribute__((always_inline))

namespace headwise::HEADWISE_ISA_NAME {

using i64 = std::int64_t;

#if defined(__AVX512F__)
constexpr int lanes = 16;
constexpr int tile_vectors = 4;  // a tile of products is tile_rows x tile_vectors accumulators
#elif defined(__AVX__)
constexpr int lanes = 8;
constexpr int tile_vectors = 2;
#elif defined(__ARM_NEON)
constexpr int lanes = 4;
constexpr int tile_vectors = 4;
#else
constexpr int lanes = 4;
constexpr int tile_vectors = 2;
#endif

constexpr int item_rows = 64;                      // query rows of one piece of work
constexpr int item_vectors = item_rows / lanes;

using Vector = float __attribute__((vector_size(4 * lanes)));
using Whole = std::int32_t __attribute__((vector_size(4 * lanes)));
using Loose = float __attribute__((vector_size(4 * lanes), aligned(1), may_alias));  // anywhere in memory
using LooseWhole = std::int32_t __attribute__((vector_size(4 * lanes), aligned(1), may_alias));

HEADWISE_INLINE Vector load(const float* at) { return *reinterpret_cast<const Loose*>(at); }
HEADWISE_INLINE void store(float* at, Vector x) { *reinterpret_cast<Loose*>(at) = x; }
HEADWISE_INLINE Whole load_whole(const std::int32_t* at) { return *reinterpret_cast<const LooseWhole*>(at); }
HEADWISE_INLINE void store_whole(std::int32_t* at, Whole x) { *reinterpret_cast<LooseWhole*>(at) = x; }
HEADWISE_INLINE Whole bits_of(Vector x) { return reinterpret_cast<Whole>(x); }
HEADWISE_INLINE Vector as_floats(Whole x) { return reinterpret_cast<Vector>(x); }

HEADWISE_INLINE Vector splat(float x) {
#if defined(__AVX512F__)
  return _mm512_set1_ps(x);
#elif defined(__AVX__)
  return _mm256_set1_ps(x);
#else
  return x - Vector{};
#endif
}

HEADWISE_INLINE Whole splat_whole(std::int32_t x) { return x - Whole{}; }
using Positive = std::uint32_t __attribute__((vector_size(4 * lanes)));

HEADWISE_INLINE Whole larger(Whole a, Whole b) {
#if defined(__AVX512F__)
  return reinterpret_cast<Whole>(_mm512_max_epi32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<Whole>(_mm256_max_epi32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#else
  const Whole above = a > b;
  return (above & a) | (~above & b);
#endif
}

// a b + c, rounded once where the CPU can. Written out, and never left to the compiler's contraction, so that
// the same numbers come out of every variant of a loop.
HEADWISE_INLINE Vector fma(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#elif defined(__ARM_NEON)
  return vfmaq_f32(c, a, b);
#else
  return a * b + c;
#endif
}

// The larger one; b where either is NaN.
HEADWISE_INLINE Vector larger(Vector a, Vector b) {
#if defined(__AVX512F__)
  return _mm512_max_ps(a, b);
#elif defined(__AVX__)
  return _mm256_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}

HEADWISE_INLINE Vector select(Whole mask, Vector yes, Vector no) {
  return as_floats((mask & bits_of(yes)) | (~mask & bits_of(no)));
}

HEADWISE_INLINE Whole select(Whole mask, Whole yes, Whole no) { return (mask & yes) | (~mask & no); }

HEADWISE_INLINE bool any(Whole mask) {
#if defined(__AVX512F__)
  return _mm512_movepi32_mask(reinterpret_cast<__m512i>(mask)) != 0;
#elif defined(__AVX__)
  return _mm256_movemask_ps(reinterpret_cast<__m256>(mask)) != 0;
#else
  std::int32_t joined = 0;
  for (int i = 0; i < lanes; ++i) joined |= mask[i];
  return joined != 0;
#endif
}

HEADWISE_INLINE bool any_above(Vector a, Vector b) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) != 0;  // the compiler makes a mask a vector, and a mask again
#else
  return any(a > b);
#endif
}

// The lanes of a mask (-1 or 0 in each), one bit each, the first lowest.
HEADWISE_INLINE std::uint32_t bits_of_mask(Whole mask) {
#if defined(__AVX512F__)
  return _mm512_movepi32_mask(reinterpret_cast<__m512i>(mask));
#elif defined(__AVX__)
  return static_cast<std::uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(mask)));
#else
  std::uint32_t bits = 0;
  for (int i = 0; i < lanes; ++i) bits |= (static_cast<std::uint32_t>(mask[i]) & 1u) << i;
  return bits;
#endif
}

// `yes` in the lanes whose bit (from the lowest) is set.
HEADWISE_INLINE Vector select_bits(std::uint32_t bits, Vector yes, Vector no) {
#if defined(__AVX512F__)
  return _mm512_mask_blend_ps(static_cast<__mmask16>(bits), no, yes);
#else
  Whole one{};
  for (int i = 0; i < lanes; ++i) one[i] = 1 << i;
  return select((splat_whole(static_cast<std::int32_t>(bits)) & one) != 0, yes, no);
#endif
}

HEADWISE_INLINE float sum_of(Vector x) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps(x);
#else
  float total = 0;
  for (int i = 0; i < lanes; ++i) total += x[i];
  return total;
#endif
}

template <class T>
constexpr HEADWISE_INLINE T least(T a, T b) { return b < a ? b : a; }
template <class T>
constexpr HEADWISE_INLINE T most(T a, T b) { return a < b ? b : a; }

}  // namespace headwise::HEADWISE_ISA_NAME
