// Whether a backward pass can be sure of its numbers.
#pragma once

#include "buffer.hpp"
#include "layout.hpp"

namespace headwise::HEADWISE_ISA_NAME {

constexpr std::int32_t infinity_bits = 0x7F800000;  // those of NaN are more, those of finite numbers less

// The larger of the sizes so far and those of `count` rows, `step` bytes apart, as the bits of floats: these are
// ordered as sizes are.
template <class Format>
HEADWISE_INLINE std::int32_t larger_of(std::int32_t most_yet, const char* rows, i64 step, i64 count, i64 columns) {
  Whole high = splat_whole(most_yet);
  for (i64 r = 0; r < count; ++r, rows += step) {
    i64 c = 0;
    for (; c + lanes <= columns; c += lanes) {
      const Vector x = Format::size == 4 ? load(reinterpret_cast<const float*>(rows) + c) : load_bf16(rows + 2 * c);
      high = larger(high, bits_of(x) & 0x7FFFFFFF);
    }
    for (; c < columns; ++c) {
      const float x = Format::size == 4 ? Raw::one(rows + 4 * c) : one_bf16(rows + 2 * c);
      high = larger(high, bits_of(splat(x)) & 0x7FFFFFFF);
    }
  }
  for (int i = 0; i < lanes; ++i) most_yet = most(most_yet, high[i]);
  return most_yet;
}

// The largest sizes of what one piece of a backward pass has read.
template <class Format>
struct Largest {
  std::int32_t q = 0, k = 0, v = 0, d_out = 0, delta = 0;
  bool doubtful = false;

  void keys(const char* k_rows, i64 k_step, const char* v_rows, i64 v_step, i64 count, const Problem& p) {
    k = larger_of<Format>(k, k_rows, k_step, count, p.d_k);
    v = larger_of<Format>(v, v_rows, v_step, count, p.d_v);
  }

  void rows(const char* q_rows, i64 q_step, const char* d_out_rows, i64 d_out_step, i64 count, const Problem& p) {
    q = larger_of<Format>(q, q_rows, q_step, count, p.d_k);
    d_out = larger_of<Format>(d_out, d_out_rows, d_out_step, count, p.d_v);
  }

  // Of rows in lanes. A log-sum-exp may not be so large that its rounding shows in the weights.
  void results(const float* lse, const float* row_delta, int count) {
    Whole wrong{}, high = splat_whole(delta);
    for (int i = 0; i < count; i += lanes) {
      const Vector x = load(lse + i);
      wrong |= ~(x < splat(8000.0f)) | ((x < splat(-8000.0f)) & (x != splat(-__builtin_inff())));
      high = larger(high, bits_of(load(row_delta + i)) & 0x7FFFFFFF);
    }
    doubtful |= any(wrong);
    for (int i = 0; i < lanes; ++i) delta = most(delta, high[i]);
  }

  // True if all are finite, and no product or sum of them can overflow.
  bool sure(const Problem& p) const {
    if (doubtful || most(most(most(q, k), most(v, d_out)), delta) >= infinity_bits) return false;
    const double scale = p.scale < 0 ? -p.scale : p.scale, width = static_cast<double>(p.d_k + p.d_v + 1);
    const double values = value(v) * value(d_out) * width;
    const double d_scores = (values + value(delta)) * width;
    return value(q) * value(k) * width < 1e37 && values < 1e37 &&
           d_scores * (1 + scale) * value(q) * static_cast<double>(p.q_len) < 1e37 &&
           d_scores * (1 + scale) * value(k) * static_cast<double>(p.k_len) < 1e37;
  }

 private:
  static double value(std::int32_t bits) {
    float x;
    std::memcpy(&x, &bits, 4);
    return static_cast<double>(x);
  }
};

}  // namespace headwise::HEADWISE_ISA_NAME
