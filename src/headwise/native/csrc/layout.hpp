// Numbers from where they lie to where products want them.
#pragma once

#include "simd.hpp"

namespace headwise::HEADWISE_ISA_NAME {

using Half = std::uint16_t __attribute__((vector_size(2 * lanes)));
using LooseHalf = std::uint16_t __attribute__((vector_size(2 * lanes), aligned(1), may_alias));

// lanes bf16 numbers as floats: a bf16 is the upper half of a float.
HEADWISE_INLINE Vector load_bf16(const char* at) {
  const Half half = *reinterpret_cast<const LooseHalf*>(at);
  const Positive wide = __builtin_convertvector(half, Positive) << 16;
  return as_floats(reinterpret_cast<Whole>(wide));
}

HEADWISE_INLINE float one_bf16(const char* at) {
  std::uint16_t half;
  std::memcpy(&half, at, 2);
  const std::uint32_t wide = static_cast<std::uint32_t>(half) << 16;
  float x;
  std::memcpy(&x, &wide, 4);
  return x;
}

// Rounded to the nearest bf16, ties to even. NaN stays NaN.
HEADWISE_INLINE std::uint16_t bf16_of(float x) {
  std::uint32_t raw;
  std::memcpy(&raw, &x, 4);
  if (x != x) return 0x7FC0;
  return static_cast<std::uint16_t>((raw + 0x7FFF + ((raw >> 16) & 1)) >> 16);
}

HEADWISE_INLINE void store_bf16(char* at, Vector x) {
  const Positive raw = reinterpret_cast<Positive>(x);
  const Positive rounded = raw + 0x7FFF + ((raw >> 16) & 1);
  const Whole chosen = (x == x) ? reinterpret_cast<Whole>(rounded) : splat_whole(0x7FC00000);
  const Positive upper = reinterpret_cast<Positive>(chosen) >> 16;
  *reinterpret_cast<LooseHalf*>(at) = __builtin_convertvector(upper, Half);
}

// How the columns of a row are read: as they are (floats, or pairs of bf16 as one number of 32 bits), or
// bf16 made floats.
struct Raw {
  static constexpr int size = 4;
  static HEADWISE_INLINE Vector vector(const char* at) { return load(reinterpret_cast<const float*>(at)); }
  static HEADWISE_INLINE float one(const char* at) {
    float x;
    std::memcpy(&x, at, 4);
    return x;
  }
};

struct Upcast {
  static constexpr int size = 2;
  static HEADWISE_INLINE Vector vector(const char* at) { return load_bf16(at); }
  static HEADWISE_INLINE float one(const char* at) { return one_bf16(at); }
};

// Lanes of a and b change places so that the 2 x 2 squares of side `s` are transposed.
template <int s, int... l>
HEADWISE_INLINE void exchange(Vector& a, Vector& b, std::integer_sequence<int, l...>) {
  const Vector low = __builtin_shufflevector(a, b, ((l & s) ? lanes + l - s : l)...);
  const Vector high = __builtin_shufflevector(a, b, ((l & s) ? lanes + l : l + s)...);
  a = low;
  b = high;
}

template <int s>
HEADWISE_INLINE void exchange_all(Vector (&x)[lanes]) {
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i)
    if (!(i & s)) exchange<s>(x[i], x[i | s], std::make_integer_sequence<int, lanes>{});
}

// In lanes without bit `s`, sums of two neighbours (s apart) of a; in those with it, of b.
template <int s>
HEADWISE_INLINE Vector halves(Vector a, Vector b) {
  exchange<s>(a, b, std::make_integer_sequence<int, lanes>{});
  return a + b;
}

// x[i][j] becomes x[j][i].
HEADWISE_INLINE void transpose(Vector (&x)[lanes]) {
  exchange_all<1>(x);
  exchange_all<2>(x);
  if constexpr (lanes > 4) exchange_all<4>(x);
  if constexpr (lanes > 8) exchange_all<8>(x);
}

// out[column][row] (item_rows apart) of up to item_rows rows, each given by its start; the rest of the last
// vector of rows is 0.
template <class Read>
inline void pack(const char* const* row, int rows, i64 columns, float* out) {
  for (int first = 0; first < rows; first += lanes) {
    i64 c = 0;
    for (; c + lanes <= columns; c += lanes) {
      Vector x[lanes];
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i)
        x[i] = first + i < rows ? Read::vector(row[first + i] + c * Read::size) : Vector{};
      transpose(x);
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) store(out + (c + i) * item_rows + first, x[i]);
    }
    for (; c < columns; ++c)
      for (int i = 0; i < lanes; ++i)
        out[c * item_rows + first + i] = first + i < rows ? Read::one(row[first + i] + c * Read::size) : 0.0f;
  }
}

// Rows of floats, `padded` columns wide (the rest 0), side by side.
template <class Read>
inline void widen(const char* rows, i64 step, i64 count, i64 columns, i64 padded, float* out) {
  for (i64 r = 0; r < count; ++r, rows += step, out += padded) {
    i64 c = 0;
    for (; c + lanes <= columns; c += lanes) store(out + c, Read::vector(rows + c * Read::size));
    for (; c < columns; ++c) out[c] = Read::one(rows + c * Read::size);
    for (; c < padded; ++c) out[c] = 0;
  }
}

#if defined(__AVX512BF16__)
// Rows of bf16, two by two: out[r][c] = (row 2r, row 2r + 1) at column c, `padded` columns (the rest 0); a
// missing last row is 0. Rows are `step` bytes apart.
inline void interleave(const char* rows, i64 step, i64 count, i64 columns, i64 padded, float* out) {
  for (i64 r = 0; r < count; r += 2, rows += 2 * step, out += padded) {
    const bool both = r + 1 < count;
    i64 c = 0;
    for (; c + lanes <= columns; c += lanes) {
      const __m512i a = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + 2 * c)));
      const __m512i b = both ? _mm512_cvtepu16_epi32(
                                   _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + step + 2 * c)))
                             : _mm512_setzero_si512();
      _mm512_storeu_si512(out + c, _mm512_or_si512(a, _mm512_slli_epi32(b, 16)));
    }
    for (; c < padded; ++c) {
      std::uint16_t pair[2] = {0, 0};
      if (c < columns) {
        std::memcpy(pair, rows + 2 * c, 2);
        if (both) std::memcpy(pair + 1, rows + step + 2 * c, 2);
      }
      std::memcpy(out + c, pair, 4);
    }
  }
}

// Two rows of floats as pairs of bf16: lane i is (a[i], b[i]).
HEADWISE_INLINE Vector pair_up(Vector a, Vector b) {
  const __m512i both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b, a));  // a's 16, then b's
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
                                         6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return reinterpret_cast<Vector>(_mm512_permutexvar_epi16(order, both));
}
#endif

}  // namespace headwise::HEADWISE_ISA_NAME
