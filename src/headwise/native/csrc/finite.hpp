// Whether a backward pass can be sure of its numbers.
#pragma once

#include "buffer.hpp"
#include "layout.hpp"
#include "pool.hpp"

namespace headwise::HEADWISE_ISA_NAME {

// The largest size of any number, as the bits of a float: those of NaN and infinity are larger than any other.
template <class Format>
HEADWISE_INLINE std::int32_t largest_of(const char* at, i64 columns) {
  Whole high{};
  i64 c = 0;
  for (; c + lanes <= columns; c += lanes) {
    const Vector x = Format::size == 4 ? load(reinterpret_cast<const float*>(at) + c) : load_bf16(at + 2 * c);
    const Whole size = bits_of(x) & 0x7FFFFFFF;
    const Whole above = size > high;
    high = (above & size) | (~above & high);
  }
  std::int32_t most = 0;
  for (int i = 0; i < lanes; ++i) most = most < high[i] ? high[i] : most;
  for (; c < columns; ++c) {
    const float x = Format::size == 4 ? Raw::one(at + 4 * c) : one_bf16(at + 2 * c);
    std::int32_t size;
    std::memcpy(&size, &x, 4);
    size &= 0x7FFFFFFF;
    most = most < size ? size : most;
  }
  return most;
}

HEADWISE_INLINE void raise_to(std::int32_t* high, std::int32_t value) {
  std::int32_t now = __atomic_load_n(high, __ATOMIC_RELAXED);
  while (now < value && !__atomic_compare_exchange_n(high, &now, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

// Looks at q, k, v, d_out, lse and d_lse, each once.
template <class Format>
class Finite {
 public:
  explicit Finite(const BackwardArguments& arguments) : a_(arguments) {}

  // True if all are finite, no product of two rows can overflow, and no log-sum-exp is so large that its
  // rounding shows in the weights.
  bool sure(Status& status) {
    const double numbers = static_cast<double>(a_.batch * a_.heads) *
                           static_cast<double>((a_.q_len + a_.k_len) * (a_.d_k + a_.d_v));
    status = pool::run(a_.batch * a_.heads, numbers, [](void* self, i64 piece) {
      static_cast<Finite*>(self)->look(piece);
      return true;
    }, this, a_.stop);
    const double scale = a_.scale < 0 ? -a_.scale : a_.scale, width = static_cast<double>(a_.d_k + a_.d_v + 1);
    const double values = value(v_) * value(d_out_) * width;
    const double d_scores = (2 * values + value(d_lse_)) * width;
    return doubtful_ == 0 && value(q_) * value(k_) * width < 1e37 && values < 1e37 &&
           d_scores * (1 + scale) * value(q_) * static_cast<double>(a_.q_len) < 1e37 &&
           d_scores * (1 + scale) * value(k_) * static_cast<double>(a_.k_len) < 1e37;
  }

 private:
  const BackwardArguments& a_;
  std::int32_t q_ = 0, k_ = 0, v_ = 0, d_out_ = 0, d_lse_ = 0, doubtful_ = 0;

  static double value(std::int32_t bits) {  // huge for infinity and NaN
    float x;
    std::memcpy(&x, &bits, 4);
    return bits >= 0x7F800000 ? 1e300 : static_cast<double>(x);
  }

  void look(i64 piece) {
    const i64 b = piece / a_.heads, h = piece % a_.heads, groups = a_.heads / a_.kv_heads;
    raise_to(&q_, over(a_.q, b, h, a_.q_len, a_.d_k));
    raise_to(&d_out_, over(a_.d_out, b, h, a_.q_len, a_.d_v));
    if (h % groups == 0) {
      raise_to(&k_, over(a_.k, b, h / groups, a_.k_len, a_.d_k));
      raise_to(&v_, over(a_.v, b, h / groups, a_.k_len, a_.d_v));
    }
    for (i64 i = piece * a_.q_len; i < (piece + 1) * a_.q_len; ++i) {
      const float lse = a_.lse[i];
      if (!(lse < 8000.0f) || (lse < -8000.0f && lse != -__builtin_inff())) raise_to(&doubtful_, 1);
    }
    if (a_.d_lse)
      raise_to(&d_lse_, largest_of<Single32>(reinterpret_cast<const char*>(a_.d_lse + piece * a_.q_len), a_.q_len));
  }

  struct Single32 {
    static constexpr int size = 4;
  };

  static std::int32_t over(const Input& x, i64 b, i64 h, i64 rows, i64 columns) {
    std::int32_t high = 0;
    for (i64 r = 0; r < rows; ++r)
      high = most(high, largest_of<Format>(row_of(x, b, h, r, Format::size), columns));
    return high;
  }
};

}  // namespace headwise::HEADWISE_ISA_NAME
