// Products of small matrices with all sums in registers: the two that attention is made of.
//
//     C[m][n] = sum_r A[m][r] B[r][n]      rows:    S^T = K Q^T, dP^T = V dO^T, dV = P^T dO, dK = dS^T Q
//     C[m][n] = sum_r A[r][m] B[r][n]      columns: O = P V, dQ = dS K, P and dS being held as [key][query]
//
// A is read in place as broadcast numbers and B as vectors, so that of all operands only queries (and output
// gradients) need another layout, and softmax over keys never crosses lanes.
#pragma once

#include "simd.hpp"

namespace headwise::HEADWISE_ISA_NAME {

// One entry of A and one vector of B: a float, or (with bf16 dot products) two bf16 that lie side by side, of
// two neighbouring r. Then r counts pairs.
struct Single {
  static HEADWISE_INLINE Vector broadcast(const char* at) {
    float x;
    std::memcpy(&x, at, 4);
    return splat(x);
  }
  static HEADWISE_INLINE Vector add(Vector a, Vector b, Vector c) { return fma(a, b, c); }
};

#if defined(__AVX512BF16__)
struct Pair {
  static HEADWISE_INLINE Vector broadcast(const char* at) {
    std::int32_t x;
    std::memcpy(&x, at, 4);
    return as_floats(reinterpret_cast<Whole>(_mm512_set1_epi32(x)));
  }
  static HEADWISE_INLINE Vector add(Vector a, Vector b, Vector c) {
    return _mm512_dpbf16_ps(c, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};
#endif

enum class Into {
  set,   // C = A B
  add,   // C = C + A B
  scale  // C = scale[m] C + A B
};

// One tile: M rows and N vectors of C. Sums start at 0, and not at C: a long sum of short ones is more exact.
template <class Entry, bool Columns, Into into, int M, int N>
HEADWISE_INLINE void tile(const char* a, i64 a_step, const char* b, i64 b_step, i64 depth, float* c, i64 c_step,
                          const float* scale) {
  Vector sum[M][N];
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) sum[m][n] = Vector{};
  }
#pragma GCC unroll 4
  for (i64 r = 0; r < depth; ++r) {
    Vector right[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) right[n] = load(reinterpret_cast<const float*>(b + r * b_step) + n * lanes);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      const Vector left = Entry::broadcast(Columns ? a + r * a_step + 4 * m : a + m * a_step + 4 * r);
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) sum[m][n] = Entry::add(left, right[n], sum[m][n]);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      float* at = c + m * c_step + n * lanes;
      Vector x = sum[m][n];
      if (into == Into::add) x += load(at);
      if (into == Into::scale) x = fma(splat(scale[m]), load(at), x);
      store(at, x);
    }
  }
}

constexpr int tile_rows = 6;

// `rows` rows of C (any number), N vectors wide.
template <class Entry, bool Columns, Into into, int N>
inline __attribute__((noinline)) void strip(i64 rows, const char* a, i64 a_step, const char* b, i64 b_step,
                                            i64 depth, float* c, i64 c_step, const float* scale) {
  const i64 next = Columns ? 4 : a_step;  // bytes from one row of C to the next, in A
  i64 m = 0;
  for (; m + tile_rows <= rows; m += tile_rows)
    tile<Entry, Columns, into, tile_rows, N>(a + m * next, a_step, b, b_step, depth, c + m * c_step, c_step,
                                             scale + m);
  if (m + 4 <= rows) {
    tile<Entry, Columns, into, 4, N>(a + m * next, a_step, b, b_step, depth, c + m * c_step, c_step, scale + m);
    m += 4;
  }
  if (m + 2 <= rows) {
    tile<Entry, Columns, into, 2, N>(a + m * next, a_step, b, b_step, depth, c + m * c_step, c_step, scale + m);
    m += 2;
  }
  for (; m < rows; ++m)
    tile<Entry, Columns, into, 1, N>(a + m * next, a_step, b, b_step, depth, c + m * c_step, c_step, scale + m);
}

// C of any size: `rows` x `vectors`.
//
// a_step and b_step are bytes from row to row of A and B; c_step counts floats. `scale` is looked at with
// Into::scale only.
template <class Entry, bool Columns, Into into>
HEADWISE_INLINE void product(i64 rows, i64 vectors, const void* a_start, i64 a_step, const void* b_start, i64 b_step,
                             i64 depth, float* c, i64 c_step, const float* scale = nullptr) {
  const char* a = static_cast<const char*>(a_start);
  const char* b = static_cast<const char*>(b_start);
  i64 n = 0;
  for (; n + tile_vectors <= vectors; n += tile_vectors)
    strip<Entry, Columns, into, tile_vectors>(rows, a, a_step, b + n * lanes * 4, b_step, depth, c + n * lanes,
                                              c_step, scale);
  switch (vectors - n) {
    case 1:
      strip<Entry, Columns, into, 1>(rows, a, a_step, b + n * lanes * 4, b_step, depth, c + n * lanes, c_step, scale);
      break;
    case 2:
      strip<Entry, Columns, into, tile_vectors == 2 ? 1 : 2>(rows, a, a_step, b + n * lanes * 4, b_step, depth,
                                                             c + n * lanes, c_step, scale);
      break;
    case 3:
      strip<Entry, Columns, into, tile_vectors == 2 ? 1 : 3>(rows, a, a_step, b + n * lanes * 4, b_step, depth,
                                                             c + n * lanes, c_step, scale);
      break;
    default: break;
  }
}

}  // namespace headwise::HEADWISE_ISA_NAME
