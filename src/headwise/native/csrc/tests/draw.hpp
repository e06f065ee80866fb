// A problem drawn at random: sizes that fit no block, and any mixture of options.
#pragma once

#include "case.hpp"

namespace headwise::tests {

class Drawn {
 public:
  Case c;
  double spread;  // of q and k: rounding of scores grows with it

  explicit Drawn(unsigned seed_) : seed(seed_), source_(seed_) {
    Problem& p = c.p;
    static const i64 lengths[] = {0, 1, 2, 3, 7, 15, 16, 17, 31, 63, 64, 65, 100, 127, 128, 129, 200, 257};
    static const i64 widths[] = {1, 2, 3, 5, 8, 15, 16, 17, 24, 32, 48, 64, 65, 80, 96};
    p.type = one_in(3) ? Type::bf16 : Type::f32;
    p.batch = 1 + below(2), p.kv_heads = 1 + below(3), p.heads = p.kv_heads * (1 + below(3));
    p.q_len = lengths[below(18)], p.k_len = lengths[below(18)];
    if (one_in(2)) p.q_len = p.k_len;
    if (one_in(8)) p.q_len = 1 + below(3), p.k_len = 1000 + below(1200);  // decoding
    p.d_k = widths[below(15)], p.d_v = one_in(2) ? p.d_k : widths[below(15)];
    p.scale = one_in(8) ? -0.3 : 1 / std::sqrt(static_cast<double>(p.d_k));
    if (one_in(4)) p.softcap = 1.5;
    if (one_in(4)) p.dropout = {0.3, static_cast<i64>(source_()) * 7919, below(3)};
    spread = one_in(4) ? 4 : 1;
    c.finish(source_, spread, one_in(3) ? below(5) : 0, one_in(3));
    if (one_in(3)) {
      for (i64 h = 0; h < p.heads; ++h) c.sinks_f.push_back(static_cast<float>(below(5)) - 2);
      p.sinks = c.sinks_f.data();
    }
    if (one_in(4))
      for (i64 n = 0; n < p.batch * p.heads * p.q_len; ++n) c.d_lse.push_back(static_cast<float>(below(100)) / 50 - 1);
    draw_mask();
    draw_bias();
  }

  Drawn(const Drawn&) = delete;

  std::string words() const {
    const Problem& p = c.p;
    std::string s = "case " + std::to_string(seed) + (p.type == Type::f32 ? " f32" : " bf16");
    const auto add = [&](const char* name, i64 n) { s += " " + std::string(name) + "=" + std::to_string(n); };
    add("b", p.batch), add("h", p.heads), add("kv", p.kv_heads), add("q", p.q_len), add("k", p.k_len);
    add("dk", p.d_k), add("dv", p.d_v), add("gap", c.q.gap), add("between", c.q.between);
    if (p.softcap > 0) s += " softcap";
    if (p.dropout.rate > 0) s += " dropout";
    if (p.sinks) s += " sinks";
    if (p.scale < 0) s += " negative";
    if (p.mask.band_low != unbounded_low) add("band_low", p.mask.band_low);
    if (p.mask.band_high != unbounded_high) add("band_high", p.mask.band_high);
    if (p.mask.prefix) s += " prefix";
    if (p.mask.key_end) s += " lengths";
    if (p.mask.ranges) add("ranges", p.mask.range_count);
    if (p.mask.q_ids) s += " documents";
    if (p.mask.dense) s += " dense";
    if (p.bias.data) s += p.bias.row ? " bias" : " bias(keys)";
    return s;
  }

 private:
  unsigned seed;
  std::mt19937 source_;
  std::vector<i64> prefix_, begin_, end_, q_ids_, k_ids_;
  std::vector<std::int32_t> ranges_;
  std::vector<std::uint8_t> dense_;
  std::vector<float> bias_;
  std::vector<std::uint16_t> bias_half_;

  i64 below(i64 n) { return static_cast<i64>(source_() % static_cast<unsigned>(n)); }
  bool one_in(i64 n) { return below(n) == 0; }
  static std::size_t size(i64 n) { return static_cast<std::size_t>(n); }

  void draw_mask() {
    Problem& p = c.p;
    Mask& m = p.mask;
    if (one_in(2)) m.band_high = p.k_len - p.q_len + (one_in(3) ? below(9) - 4 : 0);
    if (one_in(3)) m.band_low = p.k_len - p.q_len - below(40);
    if (one_in(4)) {
      for (i64 b = 0; b < p.batch; ++b) prefix_.push_back(below(p.k_len + 3));
      if (m.band_low != unbounded_low || m.band_high != unbounded_high)
        m.prefix = prefix_.data(), m.prefix_batch = 1;
    }
    if (one_in(4)) {
      for (i64 b = 0; b < p.batch; ++b) end_.push_back(below(p.k_len + 1)), begin_.push_back(below(4));
      m.key_end = end_.data(), m.key_end_batch = 1;
      if (one_in(2)) m.key_begin = begin_.data(), m.key_begin_batch = 1;
    }
    if (one_in(6)) {
      m.range_count = static_cast<std::int32_t>(1 + below(2));
      for (i64 n = 0; n < p.batch * p.q_len; ++n) {
        i64 at = 0;
        for (int r = 0; r < m.range_count; ++r) {
          const i64 first = at + below(20), last = first + below(p.k_len + 20);
          ranges_.push_back(static_cast<std::int32_t>(first)), ranges_.push_back(static_cast<std::int32_t>(last));
          at = last + 1;
        }
      }
      ranges_.push_back(0);
      m.ranges = ranges_.data(), m.range_row = 2 * m.range_count, m.range_batch = p.q_len * m.range_row;
    }
    if (one_in(5)) {
      const i64 documents = 1 + below(4);
      const bool mixed = one_in(3);
      for (i64 b = 0; b < p.batch; ++b) {
        for (i64 i = 0; i < p.q_len; ++i)
          q_ids_.push_back(mixed ? below(documents + 1) - 1 : i * documents / p.q_len);
        for (i64 j = 0; j < p.k_len; ++j)
          k_ids_.push_back(mixed ? below(documents + 1) - 1 : j * documents / p.k_len);
      }
      q_ids_.push_back(0), k_ids_.push_back(0);
      m.q_ids = q_ids_.data(), m.q_ids_batch = p.q_len, m.k_ids = k_ids_.data(), m.k_ids_batch = p.k_len;
    }
    if (one_in(5)) {
      const i64 kind = below(3);
      dense_.resize(size(p.batch * p.heads * p.q_len * p.k_len + 1));
      const i64 often = below(4);
      for (auto& x : dense_) x = often == 0 ? 1 : below(4) < often;
      m.dense = dense_.data();
      if (kind == 0) m.dense_column = 1, m.dense_row = p.k_len, m.dense_head = p.q_len * p.k_len,
                     m.dense_batch = p.heads * m.dense_head;
      if (kind == 1) m.dense_column = 1, m.dense_batch = p.k_len;
      if (kind == 2) m.dense_row = 1, m.dense_column = p.q_len;
    }
  }

  void draw_bias() {
    Problem& p = c.p;
    if (!one_in(4)) return;
    Bias& bias = p.bias;
    bias_.resize(size(p.batch * p.heads * p.q_len * p.k_len + 1));
    for (auto& x : bias_) x = one_in(6) ? -INFINITY : static_cast<float>(below(100)) / 25 - 2;
    bias_half_.resize(bias_.size());
    for (std::size_t n = 0; n < bias_.size(); ++n) {
      bias_half_[n] = to_bf16(bias_[n]);
    }
    bias.type = one_in(3) ? Type::bf16 : Type::f32;
    bias.data = bias.type == Type::f32 ? static_cast<const void*>(bias_.data()) : bias_half_.data();
    const i64 kind = below(4);
    if (kind <= 1) bias.column = 1, bias.row = p.k_len, bias.head = p.q_len * p.k_len;
    if (kind == 1) bias.batch = p.heads * bias.head;
    if (kind == 2) bias.column = 1, bias.batch = p.k_len;
    if (kind == 3) bias.row = 1, bias.column = p.q_len;
  }
};

}  // namespace headwise::tests
