// Numbers of one query row, read and computed one by one in double.
#pragma once

#include <cmath>
#include <cstring>

#include "careful.hpp"

namespace headwise {

inline double read_number(const void* data, Type type, std::int64_t place) {
  if (type == Type::f32) {
    float x;
    std::memcpy(&x, static_cast<const char*>(data) + 4 * place, 4);
    return x;
  }
  std::uint16_t half;
  std::memcpy(&half, static_cast<const char*>(data) + 2 * place, 2);
  const std::uint32_t wide = static_cast<std::uint32_t>(half) << 16;
  float x;
  std::memcpy(&x, &wide, 4);
  return x;
}

inline double read_number(const Input& x, Type type, std::int64_t b, std::int64_t h, std::int64_t row,
                          std::int64_t column) {
  return read_number(x.data, type, b * x.batch + h * x.head + row * x.row + column);
}

inline void write_number(const Output& x, Type type, std::int64_t b, std::int64_t h, std::int64_t row,
                         std::int64_t column, double value) {
  const std::int64_t place = b * x.batch + h * x.head + row * x.row + column;
  const float single = static_cast<float>(value);
  if (type == Type::f32) {
    std::memcpy(static_cast<char*>(x.data) + 4 * place, &single, 4);
    return;
  }
  std::uint32_t raw;
  std::memcpy(&raw, &single, 4);
  const std::uint16_t half =
      single != single ? 0x7FC0 : static_cast<std::uint16_t>((raw + 0x7FFF + ((raw >> 16) & 1)) >> 16);
  std::memcpy(static_cast<char*>(x.data) + 2 * place, &half, 2);
}

// May query i attend to key j? (A bias of -inf is not looked at.)
inline bool allowed(const Problem& p, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const Mask& m = p.mask;
  if (j < 0 || j >= p.k_len) return false;
  if (m.band_low != unbounded_low || m.band_high != unbounded_high) {
    const bool in_band = (m.band_low == unbounded_low || j - i >= m.band_low) &&
                         (m.band_high == unbounded_high || j - i <= m.band_high);
    if (!in_band && !(m.prefix && j < m.prefix[b * m.prefix_batch])) return false;
  }
  if (m.key_begin && j < m.key_begin[b * m.key_begin_batch]) return false;
  if (m.key_end && j >= m.key_end[b * m.key_end_batch]) return false;
  if (m.ranges) {
    const std::int32_t* range = m.ranges + b * m.range_batch + h * m.range_head + i * m.range_row;
    bool in_one = false;
    for (int r = 0; r < m.range_count; ++r) in_one = in_one || (j >= range[2 * r] && j < range[2 * r + 1]);
    if (!in_one) return false;
  }
  if (m.q_ids) {
    const std::int64_t id = m.q_ids[b * m.q_ids_batch + i];
    if (id < 0 || id != m.k_ids[b * m.k_ids_batch + j]) return false;
  }
  return !m.dense || m.dense[b * m.dense_batch + h * m.dense_head + i * m.dense_row + j * m.dense_column];
}

// Query `query` of head `head` against every key.
struct OneRow {
  const Problem& p;
  std::int64_t batch, head, query;

  std::int64_t kv_head() const { return head / (p.heads / p.kv_heads); }

  double raw(std::int64_t j) const {  // q . k
    const std::int64_t q_place = batch * p.q.batch + head * p.q.head + query * p.q.row;
    const std::int64_t k_place = batch * p.k.batch + kv_head() * p.k.head + j * p.k.row;
    double dot = 0;
    std::int64_t c = 0;
    if (p.type == Type::f32) {
      const float *a = static_cast<const float*>(p.q.data) + q_place, *b = static_cast<const float*>(p.k.data) + k_place;
      double sums[4] = {0, 0, 0, 0};  // several at a time, for compilers that keep to the order of sums
      for (; c + 4 <= p.d_k; c += 4)
        for (int n = 0; n < 4; ++n) sums[n] += static_cast<double>(a[c + n]) * static_cast<double>(b[c + n]);
      dot = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
    for (; c < p.d_k; ++c) dot += read_number(p.q.data, p.type, q_place + c) * read_number(p.k.data, p.type, k_place + c);
    return dot;
  }

  double bias(std::int64_t j) const {
    if (!p.bias.data) return 0;
    const std::int64_t place =
        batch * p.bias.batch + head * p.bias.head + query * p.bias.row + j * p.bias.column;
    return read_number(p.bias.data, p.bias.type, place);
  }

  // With softcap and bias; -inf where the key may not be attended to.
  double score(std::int64_t j) const {
    if (!allowed(p, batch, head, query, j)) return -INFINITY;
    const double added = bias(j);
    if (added == -INFINITY) return added;
    const double s = p.scale * raw(j);
    // A bias that dwarfs all scores absorbs them, as it does in float32.
    return static_cast<float>((p.softcap > 0 ? p.softcap * std::tanh(s / p.softcap) : s) + added);
  }

  double value(std::int64_t j, std::int64_t column) const {
    return read_number(p.v, p.type, batch, kv_head(), j, column);
  }
};

}  // namespace headwise
