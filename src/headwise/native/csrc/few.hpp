// Scores of very few query rows, where reading the keys is all the work: for steps of decoding with a bias, softcap
// or dropout, and for what is seen of any (decode.hpp has the plain ones).
//
// The columns of a key lie in the lanes, and a key is read once for all rows. Sixteen such sums (of the key and
// row pairs that come next) are then added up across lanes together, by one half-transposition.
#pragma once

#include "formats.hpp"

namespace headwise::HEADWISE_ISA_NAME {

constexpr int few_rows = 8;
constexpr i64 ahead = 32;  // keys

// Bytes of a row that fill one vector; rows must be whole vectors.
template <class Format>
constexpr int few_bytes = Format::size == 4 || Format::together == 2 ? 4 * lanes : 2 * lanes;

template <class Format>
HEADWISE_INLINE bool in_few(const Problem& p, int rows) {
  return rows <= least(few_rows, lanes) && p.d_k > 0 && p.d_k * Format::size % few_bytes<Format> == 0;
}

template <class Format>
HEADWISE_INLINE Vector few_vector(const char* at) {
  return few_bytes<Format> == 4 * lanes ? load(reinterpret_cast<const float*>(at)) : load_bf16(at);
}

// x[i] becomes, in lane i of x[0], the sum over the lanes of x[i].
HEADWISE_INLINE Vector sums_of(Vector (&x)[lanes]) {
#pragma GCC unroll 16
  for (int i = 0; i < lanes; i += 2) x[i / 2] = halves<1>(x[i], x[i + 1]);
#pragma GCC unroll 8
  for (int i = 0; i < lanes / 2; i += 2) x[i / 2] = halves<2>(x[i], x[i + 1]);
  if constexpr (lanes > 4) {
#pragma GCC unroll 4
    for (int i = 0; i < lanes / 4; i += 2) x[i / 2] = halves<4>(x[i], x[i + 1]);
  }
  if constexpr (lanes > 8) x[0] = halves<8>(x[0], x[1]);
  return x[0];
}

// scores[key][row] for `count` <= R rows; lanes of rows that are not there get some other row's.
template <class Format, int R>
inline void score_few(const char* const* row, int count, const char* k, i64 step, int keys, i64 bytes, const char* v,
                      i64 v_step, i64 v_bytes, float* scores) {
  constexpr int at_once = lanes / R;  // keys
  for (int first = 0; first < keys; first += at_once) {
    Vector sum[lanes];
#pragma GCC unroll 16
    for (int j = 0; j < at_once; ++j) {  // one key after another: memory is what this waits for
      const int n = least(first + j, keys - 1);
      const char* key = k + n * step;
      // The keys after next, and the values that are next, are asked for now.
      for (i64 c = 0; c < bytes; c += 64) __builtin_prefetch(key + ahead * step + c);
      for (i64 c = 0; c < v_bytes; c += 64) __builtin_prefetch(v + n * v_step + c);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) sum[j * R + i] = Vector{};
      for (i64 c = 0; c < bytes; c += few_bytes<Format>) {
        const Vector x = few_vector<Format>(key + c);
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i)
          sum[j * R + i] = Format::Entry::add(x, few_vector<Format>(row[least(i, count - 1)] + c), sum[j * R + i]);
      }
    }
    alignas(64) float all[lanes];
    store(all, sums_of(sum));
#pragma GCC unroll 16
    for (int j = 0; j < at_once; ++j)
      if (first + j < keys) std::memcpy(scores + (first + j) * item_rows, all + j * R, 4 * R);
  }
}

template <class Format>
inline void score_few(const char* const* row, int count, const char* k, i64 step, int keys, i64 d_k, const char* v,
                      i64 v_step, i64 v_bytes, float* scores) {
  const i64 bytes = d_k * Format::size;
  if (count == 1)
    score_few<Format, 1>(row, count, k, step, keys, bytes, v, v_step, v_bytes, scores);
  else if (count == 2)
    score_few<Format, 2>(row, count, k, step, keys, bytes, v, v_step, v_bytes, scores);
  else if (count <= 4)
    score_few<Format, 4>(row, count, k, step, keys, bytes, v, v_step, v_bytes, scores);
  else
    score_few<Format, least(few_rows, lanes)>(row, count, k, step, keys, bytes, v, v_step, v_bytes, scores);
}

}  // namespace headwise::HEADWISE_ISA_NAME
