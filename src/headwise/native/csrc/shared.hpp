// Sums that several pieces of a backward pass add to: in turn, so that they have one order. Where turns are many,
// what each addition rounds off is kept beside the sum, so that sums of equal numbers don't drift.
#pragma once

#include "formats.hpp"
#include "rows.hpp"

namespace headwise::HEADWISE_ISA_NAME {

// scale * from, as numbers of the output's type.
template <class Format>
inline void write_row(char* to, const float* from, i64 columns, float scale) {
  i64 c = 0;
  for (; c + lanes <= columns; c += lanes) {
    const Vector x = load(from + c) * splat(scale);
    if (Format::size == 4)
      store(reinterpret_cast<float*>(to) + c, x);
    else
      store_bf16(to + 2 * c, x);
  }
  for (; c < columns; ++c) {
    const float x = from[c] * scale;
    const std::uint16_t half = bf16_of(x);
    std::memcpy(to + Format::size * c, Format::size == 4 ? static_cast<const void*>(&x) : &half, Format::size);
  }
}

// sum += x, exactly but for what a second float, `lost`, can't hold.
HEADWISE_INLINE void add_kept(float& sum, float& lost, float x) {
  const float y = x + lost, total = sum + y, part = total - sum;
  lost = (sum - (total - part)) + (y - part);
  sum = total;
}

inline float sum_of_some(const float* x, int count) {
  Vector sum{};
  int i = 0;
  for (; i + lanes <= count; i += lanes) sum += load(x + i);
  float total = sum_of(sum);
  for (; i < count; ++i) total += x[i];
  return total;
}

template <class Format>
class Shared {
 public:
  // `blocks` of query rows and `chunks` of keys: pieces of different chunks share a block's gradient of q.
  bool reserve(const BackwardArguments& arguments, i64 blocks, i64 chunks) {
    a_ = &arguments, blocks_ = blocks, chunks_ = chunks;
    const i64 of_q = a_->batch * a_->heads * blocks;
    const i64 of_bias = a_->d_bias ? bias_planes() * (a_->d_bias_row ? blocks : 1) * chunks : 0;
    const i64 entries = a_->batch * a_->heads * a_->q_len * a_->d_k;
    const i64 sums = chunks > 1 && Format::size == 2 ? entries : 0, lost = chunks > near_tiles ? entries : 0;
    const i64 lost_bias = a_->d_bias && a_->d_bias_row == 0 ? bias_planes() * a_->k_len : 0;
    const i64 counters = (of_q + of_bias + 15) / 16 * 16;
    memory_ = pool::reserve(4 * static_cast<std::size_t>(counters + sums + lost + lost_bias));
    if (!memory_) return false;
    q_turns_ = static_cast<std::int32_t*>(memory_);
    bias_turns_ = q_turns_ + of_q;
    float* at = static_cast<float*>(memory_) + counters;
    sums_ = sums ? at : nullptr;
    lost_ = lost ? at + sums : nullptr;
    lost_bias_ = lost_bias ? at + sums + lost : nullptr;
    return true;
  }
  void release() { pool::release(memory_); }

  // dQ of a block of rows (nullptr: all 0): `turn` counts the chunks that these rows attend to.
  void add_d_q(const Rows& rows, i64 block, i64 turn, bool last, const float* from) {
    std::int32_t* counter = q_turns_ + rows.batch * a_->heads * blocks_ + block;
    if (!pool::wait_turn(counter, static_cast<std::int32_t>(turn))) return;
    const i64 wide = padded(a_->d_k);
    const float scale = static_cast<float>(a_->scale);
    const bool rounds = last && Format::size == 2;  // from the sums to the output
    for (int i = 0; i < rows.count && (from || turn == 0 || last); ++i) {
      char* to = row_of(a_->grad_q, rows.batch, rows.head[i], rows.query[i], Format::size);
      const float* part = from ? from + i * wide : nullptr;
      if (turn == 0 && last) {
        if (part)
          write_row<Format>(to, part, a_->d_k, scale);
        else
          std::memset(to, 0, static_cast<std::size_t>(a_->d_k * Format::size));
        continue;
      }
      const i64 entry = ((rows.batch * a_->heads + rows.head[i]) * a_->q_len + rows.query[i]) * a_->d_k;
      float* sum = Format::size == 4 ? reinterpret_cast<float*>(to) : sums_ + entry;
      float* lost = lost_ ? lost_ + entry : nullptr;
      if (turn == 0) {
        for (i64 c = 0; c < a_->d_k; ++c) sum[c] = part ? part[c] * scale : 0;
        if (lost) std::memset(lost, 0, static_cast<std::size_t>(a_->d_k) * sizeof(float));
      } else if (part && lost) {
        for (i64 c = 0; c < a_->d_k; ++c) add_kept(sum[c], lost[c], part[c] * scale);
      } else if (part) {
        for (i64 c = 0; c < a_->d_k; ++c) sum[c] += part[c] * scale;
      }
      if (last && lost)
        for (i64 c = 0; c < a_->d_k; ++c) sum[c] += lost[c];
      if (rounds) write_row<Format>(to, sum, a_->d_k, 1);
    }
    pool::pass_turn(counter);
  }

  // The gradient of a bias that each row has of its own, of a block of rows and a chunk of keys, [key][row] (nullptr:
  // all 0), in the order of batch entries and heads where they share it.
  void add_bias(const Rows& rows, i64 chunk, i64 start, i64 keys, const float* from) {
    const BiasPlace place = bias_place(rows.batch, rows.head[0]);
    std::int32_t* counter = bias_turns_ + (place.plane * blocks_ + rows.query[0] / item_rows) * chunks_ + chunk;
    if (!pool::wait_turn(counter, static_cast<std::int32_t>(place.rank))) return;
    for (int i = 0; from && i < rows.count; ++i) {
      float* to = place.start + rows.query[i] * a_->d_bias_row + start;
      for (i64 j = 0; j < keys; ++j) to[j] += from[j * item_rows + i];
    }
    pool::pass_turn(counter);
  }

  // That of a bias which all rows share: the sum over a head's rows, of a chunk of keys, and what the sum lost.
  void add_key_bias(i64 b, i64 h, i64 chunk, i64 start, i64 keys, const float* sum, const float* sum_lost) {
    const BiasPlace place = bias_place(b, h);
    std::int32_t* counter = bias_turns_ + place.plane * chunks_ + chunk;
    if (!pool::wait_turn(counter, static_cast<std::int32_t>(place.rank))) return;
    float* to = place.start + start;
    float* lost = lost_bias_ + place.plane * a_->k_len + start;
    const bool last = place.rank + 1 == a_->batch * a_->heads / bias_planes();
    for (i64 j = 0; j < keys; ++j) {
      if (place.rank == 0) lost[j] = 0;
      add_kept(to[j], lost[j], sum[j]);
      add_kept(to[j], lost[j], sum_lost[j]);
      if (last) to[j] += lost[j];
    }
    pool::pass_turn(counter);
  }

 private:
  const BackwardArguments* a_ = nullptr;
  i64 blocks_ = 0, chunks_ = 0;
  void* memory_ = nullptr;
  std::int32_t *q_turns_ = nullptr, *bias_turns_ = nullptr;
  float* sums_ = nullptr;       // [batch, heads, q_len, d_k]: where dQ can't be added up in the output itself
  float* lost_ = nullptr;       // of the same shape: what dQ's sums lost
  float* lost_bias_ = nullptr;  // [planes, k_len]: of a bias that all rows share

  // Where a head's part of the bias's gradient lies, and which of those who share it the head is.
  struct BiasPlace {
    i64 plane, rank;
    float* start;
  };
  BiasPlace bias_place(i64 b, i64 h) const {
    const bool by_batch = a_->d_bias_batch != 0, by_head = a_->d_bias_head != 0;
    return {(by_batch ? b : 0) * (by_head ? a_->heads : 1) + (by_head ? h : 0),
            (by_batch ? 0 : b) * (by_head ? 1 : a_->heads) + (by_head ? 0 : h),
            a_->d_bias + b * a_->d_bias_batch + h * a_->d_bias_head};
  }

  // How many biases of their own batch entries and heads have.
  i64 bias_planes() const { return (a_->d_bias_batch ? a_->batch : 1) * (a_->d_bias_head ? a_->heads : 1); }
};

}  // namespace headwise::HEADWISE_ISA_NAME
