// One attention problem with numbers, for the tests: its tensors, options, and the naive answer in double.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "attention.hpp"

namespace headwise::tests {

using i64 = std::int64_t;

inline std::uint16_t to_bf16(float x) {
  std::uint32_t raw;
  std::memcpy(&raw, &x, 4);
  return static_cast<std::uint16_t>((raw + 0x7FFF + ((raw >> 16) & 1)) >> 16);
}
inline float from_bf16(std::uint16_t half) {
  const std::uint32_t raw = static_cast<std::uint32_t>(half) << 16;
  float x;
  std::memcpy(&x, &raw, 4);
  return x;
}

// A tensor [batch, heads, rows, columns] in float32 or bf16, with `gap` unused columns at the end of each row,
// and rows of all heads side by side ([batch, rows, heads, columns] in memory) if `between`.
struct Tensor {
  Type type = Type::f32;
  i64 batch = 0, heads = 0, rows = 0, columns = 0, gap = 0;
  bool between = false;
  std::vector<float> f;
  std::vector<std::uint16_t> h;

  i64 batch_stride() const { return heads * rows * (columns + gap); }
  i64 head_stride() const { return between ? columns + gap : rows * (columns + gap); }
  i64 row_stride() const { return between ? heads * (columns + gap) : columns + gap; }
  i64 size() const { return batch * batch_stride(); }
  i64 at(i64 b, i64 n, i64 r, i64 c) const { return b * batch_stride() + n * head_stride() + r * row_stride() + c; }

  void make(float fill = NAN) {
    if (type == Type::f32)
      f.assign(static_cast<std::size_t>(size()), fill);
    else
      h.assign(static_cast<std::size_t>(size()), to_bf16(fill));
  }
  double get(i64 b, i64 n, i64 r, i64 c) const {
    const auto place = static_cast<std::size_t>(at(b, n, r, c));
    return type == Type::f32 ? f[place] : from_bf16(h[place]);
  }
  void set(i64 b, i64 n, i64 r, i64 c, double x) {
    const auto place = static_cast<std::size_t>(at(b, n, r, c));
    if (type == Type::f32)
      f[place] = static_cast<float>(x);
    else
      h[place] = std::isnan(x) ? 0x7FC0 : to_bf16(static_cast<float>(x));
  }
  void random(std::mt19937& source, double spread) {
    make();  // NaN in the gaps: whoever reads them is found out
    std::normal_distribution<double> normal(0, spread);
    for (i64 b = 0; b < batch; ++b)
      for (i64 n = 0; n < heads; ++n)
        for (i64 r = 0; r < rows; ++r)
          for (i64 c = 0; c < columns; ++c) set(b, n, r, c, normal(source));
  }
  void* data() { return type == Type::f32 ? static_cast<void*>(f.data()) : static_cast<void*>(h.data()); }
  Input input() { return {data(), batch_stride(), head_stride(), row_stride()}; }
  Output output() { return {data(), batch_stride(), head_stride(), row_stride()}; }
};

inline Tensor tensor(Type type, i64 batch, i64 heads, i64 rows, i64 columns, i64 gap = 0, bool between = false) {
  Tensor t;
  t.type = type, t.batch = batch, t.heads = heads, t.rows = rows, t.columns = columns, t.gap = gap;
  t.between = between;
  t.make();
  return t;
}

// Everything that the naive answer says.
struct Answer {
  std::vector<double> out, lse, weights;  // [b, h, q, d_v], [b, h, q], [b, h, q, k] (before dropout)
  std::vector<double> entropy, distance, max_weight;
  std::vector<i64> max_key;
  std::vector<double> d_q, d_k, d_v, d_bias, d_sinks;  // d_bias: [b, h, q, k]
};

// May query i attend to key j, by the words of attention.hpp.
inline bool may(const Problem& p, i64 b, i64 h, i64 i, i64 j) {
  const Mask& m = p.mask;
  bool ok = (m.band_low == unbounded_low || j - i >= m.band_low) &&
            (m.band_high == unbounded_high || j - i <= m.band_high);
  if (m.prefix && j < m.prefix[b * m.prefix_batch]) ok = true;
  if (m.key_begin) ok = ok && j >= m.key_begin[b * m.key_begin_batch];
  if (m.key_end) ok = ok && j < m.key_end[b * m.key_end_batch];
  if (m.ranges) {
    bool in = false;
    const std::int32_t* r = m.ranges + b * m.range_batch + h * m.range_head + i * m.range_row;
    for (int n = 0; n < m.range_count; ++n) in = in || (r[2 * n] <= j && j < r[2 * n + 1]);
    ok = ok && in;
  }
  if (m.q_ids) {
    const i64 q = m.q_ids[b * m.q_ids_batch + i], k = m.k_ids[b * m.k_ids_batch + j];
    ok = ok && q == k && q >= 0;
  }
  if (m.dense) ok = ok && m.dense[b * m.dense_batch + h * m.dense_head + i * m.dense_row + j * m.dense_column];
  return ok;
}

// Whether dropout keeps a weight: the Python hash, written again.
inline bool kept(const Problem& p, i64 b, i64 h, i64 i, i64 j) {
  if (p.dropout.rate <= 0) return true;
  const auto scramble = [](std::int64_t x) {
    x = static_cast<std::int64_t>(static_cast<std::uint64_t>(x) * 0x2545F4914F6CDD1Dull);
    x ^= (x >> 29) & ((1ll << 35) - 1);
    x = static_cast<std::int64_t>(static_cast<std::uint64_t>(x) * 0x1B873593CC9E2D51ull);
    return static_cast<std::uint32_t>((x ^ ((x >> 32) & 0xFFFFFFFFll)) & 0xFFFFFFFFll);
  };
  const auto wrap = [](std::uint64_t x) { return static_cast<std::int64_t>(x); };
  const std::uint64_t seed = static_cast<std::uint64_t>(p.dropout.seed);
  const std::uint64_t row = static_cast<std::uint64_t>(((p.dropout.batch_start + b) * p.heads + h) * p.q_len + i);
  std::uint32_t x = scramble(wrap(seed + row * 0x9E3779B1ull)) ^
                    scramble(wrap(seed * 0x85EBCA6Bull + static_cast<std::uint64_t>(j)));
  x *= 0x7FEB352Du;
  x ^= x >> 15;
  x *= 0x846CA68Bu;
  x ^= x >> 16;
  const double threshold = std::nearbyint(p.dropout.rate * 4294967296.0) - 2147483648.0;
  return static_cast<double>(static_cast<std::int32_t>(x)) >= threshold;
}

struct Case {
  Problem p;
  Tensor q, k, v, out, d_out, bias;
  std::vector<double> sinks;
  std::vector<float> lse, sinks_f, d_lse;

  // Sizes and options are in `p`; the bias's strides too, its numbers are here.
  void finish(std::mt19937& source, double spread, i64 gap, bool between) {
    q = tensor(p.type, p.batch, p.heads, p.q_len, p.d_k, gap, between);
    k = tensor(p.type, p.batch, p.kv_heads, p.k_len, p.d_k, gap, between);
    v = tensor(p.type, p.batch, p.kv_heads, p.k_len, p.d_v, gap, between);
    out = tensor(p.type, p.batch, p.heads, p.q_len, p.d_v, gap, between);
    d_out = out;
    q.random(source, spread), k.random(source, spread), v.random(source, 1), d_out.random(source, 1);
    lse.assign(static_cast<std::size_t>(p.batch * p.heads * p.q_len), NAN);
    point();
  }
  void point() { p.q = q.input(), p.k = k.input(), p.v = v.input(); }

  double bias_at(i64 b, i64 h, i64 i, i64 j) const {
    if (!p.bias.data) return 0;
    const i64 place = b * p.bias.batch + h * p.bias.head + i * p.bias.row + j * p.bias.column;
    return p.bias.type == Type::f32 ? static_cast<const float*>(p.bias.data)[place]
                                    : from_bf16(static_cast<const std::uint16_t*>(p.bias.data)[place]);
  }

  Answer answer(bool gradients) const;
};

inline Answer Case::answer(bool gradients) const {
  const i64 B = p.batch, H = p.heads, S = p.q_len, K = p.k_len, groups = p.kv_heads ? H / p.kv_heads : 1;
  Answer a;
  const auto size = [](i64 n) { return static_cast<std::size_t>(n); };
  a.out.assign(size(B * H * S * p.d_v), 0), a.lse.assign(size(B * H * S), 0);
  a.weights.assign(size(B * H * S * K), 0);
  a.entropy = a.distance = a.max_weight = a.lse;
  a.max_key.assign(size(B * H * S), -1);
  if (gradients) {
    a.d_q.assign(size(B * H * S * p.d_k), 0), a.d_k.assign(size(B * p.kv_heads * K * p.d_k), 0);
    a.d_v.assign(size(B * p.kv_heads * K * p.d_v), 0), a.d_bias.assign(size(B * H * S * K), 0);
    a.d_sinks.assign(size(H), 0);
  }
  std::vector<double> s(size(K)), slope(size(K)), w(size(K));
  for (i64 b = 0; b < B; ++b)
    for (i64 h = 0; h < H; ++h)
      for (i64 i = 0; i < S; ++i) {
        const i64 n = h / groups, row = (b * H + h) * S + i;
        double high = -INFINITY;
        for (i64 j = 0; j < K; ++j) {
          double dot = 0;
          for (i64 c = 0; c < p.d_k; ++c) dot += q.get(b, h, i, c) * k.get(b, n, j, c);
          dot *= p.scale;
          slope[size(j)] = 1;
          if (p.softcap > 0) {
            const double t = std::tanh(dot / p.softcap);
            slope[size(j)] = 1 - t * t;
            dot = p.softcap * t;
          }
          dot += bias_at(b, h, i, j);
          s[size(j)] = may(p, b, h, i, j) && bias_at(b, h, i, j) != -INFINITY ? dot : -INFINITY;
          if (s[size(j)] > high) high = s[size(j)], a.max_key[size(row)] = j;
        }
        const double dead = high == -INFINITY;
        if (p.sinks) high = std::fmax(high, static_cast<double>(p.sinks[h]));
        double sum = p.sinks ? std::exp(p.sinks[h] - high) : 0;
        for (i64 j = 0; j < K; ++j) sum += s[size(j)] == -INFINITY ? 0 : std::exp(s[size(j)] - high);
        a.lse[size(row)] = high == -INFINITY ? high : high + std::log(sum);
        for (i64 j = 0; j < K; ++j) {
          const double P = s[size(j)] == -INFINITY || dead ? 0 : std::exp(s[size(j)] - high) / sum;
          w[size(j)] = P;
          a.weights[size(row * K + j)] = P;
          if (P > 0) a.entropy[size(row)] -= P * std::log(P);
          a.distance[size(row)] += P * std::fabs(static_cast<double>(i + K - S - j));
          a.max_weight[size(row)] = std::fmax(a.max_weight[size(row)], P);
          if (P > 0 && kept(p, b, h, i, j))
            for (i64 c = 0; c < p.d_v; ++c)
              a.out[size(row * p.d_v + c)] += P / (1 - p.dropout.rate) * v.get(b, n, j, c);
        }
        if (!gradients) continue;
        double delta = d_lse.empty() ? 0 : -d_lse[size(row)];
        for (i64 c = 0; c < p.d_v; ++c) delta += a.out[size(row * p.d_v + c)] * d_out.get(b, h, i, c);
        for (i64 j = 0; j < K; ++j) {
          const double P = w[size(j)];
          if (s[size(j)] == -INFINITY) continue;
          double d_weight = 0;
          const double dropped = kept(p, b, h, i, j) ? 1 / (1 - p.dropout.rate) : 0;
          for (i64 c = 0; c < p.d_v; ++c) {
            d_weight += d_out.get(b, h, i, c) * v.get(b, n, j, c) * dropped;
            a.d_v[size(((b * p.kv_heads + n) * K + j) * p.d_v + c)] += P * dropped * d_out.get(b, h, i, c);
          }
          const double d_score = P * (d_weight - delta);
          a.d_bias[size(row * K + j)] = d_score;
          for (i64 c = 0; c < p.d_k; ++c) {
            a.d_q[size(row * p.d_k + c)] += d_score * slope[size(j)] * p.scale * k.get(b, n, j, c);
            a.d_k[size(((b * p.kv_heads + n) * K + j) * p.d_k + c)] +=
                d_score * slope[size(j)] * p.scale * q.get(b, h, i, c);
          }
        }
        if (p.sinks && a.lse[size(row)] != -INFINITY)
          a.d_sinks[size(h)] -= std::exp(p.sinks[h] - a.lse[size(row)]) * delta;
      }
  return a;
}

}  // namespace headwise::tests
