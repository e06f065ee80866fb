// From sums to results: outputs, log-sum-exp and a row's statistics.
#pragma once

#include "buffer.hpp"
#include "careful.hpp"
#include "marks.hpp"
#include "picks.hpp"

namespace headwise::HEADWISE_ISA_NAME {

template <class Format>
class Finish {
 public:
  // `seen`, `picks` and `marks` are looked at where `seen` is given. `scale`: of the scores that they hold.
  Finish(const ForwardArguments& arguments, const Rows& rows, const Softmax& softmax, Seen* seen = nullptr,
         Picks* picks = nullptr, const Marks* marks = nullptr, float scale = 1)
      : a_(arguments), rows_(rows), softmax_(softmax), seen_(seen), picks_(picks), marks_(marks) {
    const int vectors = (rows.count + lanes - 1) / lanes;
    for (int v = 0; v < vectors; ++v) close(v);
    if (!seen) return;
    for (int v = 0; v < vectors; ++v) make_weights(softmax, v, scale, inverse_, seen->best);
    picks->weigh(a_.rows, softmax, scale, inverse_, vectors);
  }

  // Writes every row. Where a number isn't finite, the row is computed again with care: what is masked must
  // not have caused it (0 times NaN is NaN), and what is not masked must have the effect it should have. But not where
  // the caller is told that it is so, and has been: then the call is made again in another way.
  // False: there was no memory for that.
  bool write(const float* outputs, i64 wide) {
    for (int i = 0; i < rows_.count; ++i) {
      const i64 place = (rows_.batch * a_.heads + rows_.head[i]) * a_.q_len + rows_.query[i];
      const bool fine = write_output(i, outputs + i * wide);
      if (!fine || bad_[i]) {
        if (a_.not_finite && __atomic_load_n(a_.not_finite, __ATOMIC_RELAXED)) continue;
        if (!careful_row(a_, rows_.batch, rows_.head[i], rows_.query[i])) return false;
      } else {
        a_.lse[place] = lse_[i];
        if (seen_) write_statistics(i, place);
      }
      if (!a_.rows.reference) continue;
      const bool dead = softmax_.top[i] == -__builtin_inff();
      a_.rows.reference[place] = dead ? largest_float : softmax_.top[i];  // 2^(s - largest) is 0
      a_.rows.share[place] = bad_[i] ? __builtin_nanf("") : inverse_[i];
    }
    return true;
  }

 private:
  const ForwardArguments& a_;
  const Rows& rows_;
  const Softmax& softmax_;
  const Seen* seen_;
  const Picks* picks_;
  const Marks* marks_;
  alignas(64) float lse_[item_rows];
  alignas(64) float span_[item_rows];     // the same in powers of two, relative to top
  alignas(64) float inverse_[item_rows];  // 1 / the sum of the weights, relative to top; 0 in a dead row
  alignas(64) float factor_[item_rows];   // what outputs are multiplied by: the same of the weights in products
  bool bad_[item_rows];

  void close(int v) {
    const Vector none = splat(-__builtin_inff());
    const Vector top = load(softmax_.top + v * lanes), sum = load(softmax_.sum + v * lanes);
    const Vector taken = load((by_rounded<Format>(a_) ? softmax_.rounded : softmax_.sum) + v * lanes);
    Vector inverse, factor, span, lse;
    if (a_.sinks) {
      alignas(64) float sink[lanes];
      for (int i = 0; i < lanes; ++i)
        sink[i] = v * lanes + i < rows_.count ? a_.sinks[rows_.head[v * lanes + i]] * log2_e : 0.0f;
      const Vector extra = load(sink), high = larger(top, extra);
      const Whole dead = high == none;  // neither a key nor the sink
      const Vector lower = select(top == none, Vector{}, exp2(top - high)), sunk = exp2(extra - high);
      const Vector total = fma(sum, lower, sunk);
      inverse = select(dead, Vector{}, lower / total);
      factor = select(dead, Vector{}, lower / fma(taken, lower, sunk));
      span = (high - top) + log2(total);
      lse = select(dead, none, natural(high, total));
    } else {
      const Whole dead = top == none;
      inverse = select(dead, Vector{}, splat(1.0f) / sum);
      factor = select(dead, Vector{}, splat(1.0f) / taken);
      span = log2(sum);
      lse = select(dead, none, natural(top, sum));
    }
    store(inverse_ + v * lanes, inverse);
    store(factor_ + v * lanes, factor);
    store(span_ + v * lanes, span);
    store(lse_ + v * lanes, lse);
    for (int i = v * lanes; i < least((v + 1) * lanes, rows_.count); ++i) {
      const float t = softmax_.top[i], w = lse_[i];
      const bool empty = t == -__builtin_inff();
      bad_[i] = !(empty || (t < 1e30f && t > -1e30f)) || w != w || w > 1e30f;
      if (empty && softmax_.sum[i] != 0) bad_[i] = true;  // NaN among its scores, none of them above -inf
      if (empty && a_.sinks) lse_[i] = a_.sinks[rows_.head[i]];  // to the bit: nothing is added to it
    }
  }

  bool write_output(int i, const float* from) const {
    char* to = row_of(a_.out, rows_.batch, rows_.head[i], rows_.query[i], Format::size);
    float factor = factor_[i];
    if (a_.dropout.rate > 0) factor = static_cast<float>(factor / (1 - a_.dropout.rate));
    const Vector f = splat(factor);
    Whole fine = splat_whole(-1);
    i64 c = 0;
    for (; c + lanes <= a_.d_v; c += lanes) {
      const Vector x = load(from + c) * f;
      fine &= x - x == Vector{};
      if (Format::size == 4)
        store(reinterpret_cast<float*>(to) + c, x);
      else
        store_bf16(to + 2 * c, x);
    }
    bool rest = true;
    for (; c < a_.d_v; ++c) {
      const float x = from[c] * factor;
      rest = rest && x - x == 0;
      if (Format::size == 4) {
        std::memcpy(to + 4 * c, &x, 4);
      } else {
        const std::uint16_t half = bf16_of(x);
        std::memcpy(to + 2 * c, &half, 2);
      }
    }
    return rest && !any(~fine);
  }

  void write_statistics(int i, i64 place) const {
    const RowStatistics& ask = a_.rows;
    const bool dead = softmax_.top[i] == -__builtin_inff();
    const float mass = softmax_.sum[i], inverse = inverse_[i];
    if (ask.entropy)  // at least 0, where rounding may pass it
      ask.entropy[place] =
          dead ? 0.0f : most(ln_2 * (span_[i] * mass * inverse - seen_->entropy[i] * inverse), 0.0f);
    if (ask.distance) ask.distance[place] = dead ? 0.0f : seen_->distance[i] * inverse;
    if (ask.spread) ask.spread[place] = dead ? 0.0f : variance(seen_->first[i], seen_->second[i], mass);
    if (ask.max_weight) ask.max_weight[place] = seen_->best[i];
    if (ask.max_key) ask.max_key[place] = seen_->best_key[i];
    for (i64 o = 0; o < ask.offset_count; ++o)
      ask.offset_mass[o * a_.batch * a_.heads * a_.q_len + place] = picks_->offset_scores[o * item_rows + i];
    for (i64 t = 0; t < ask.top_count; ++t) {
      ask.top_keys[place * ask.top_count + t] = picks_->top_keys[t * item_rows + i];
      ask.top_weights[place * ask.top_count + t] = picks_->top_scores[t * item_rows + i];
    }
    for (i64 c = 0; c < ask.mark_columns; ++c)
      ask.mark_mass[place * ask.mark_columns + c] = marks_->mass[c * item_rows + i] * inverse;
  }

  // From sums about any centre.
  static float variance(float first, float second, float mass) {
    const float mean = first / mass;
    return most((second - mean * first) / mass, 0.0f);
  }
};

}  // namespace headwise::HEADWISE_ISA_NAME
