// What happens to scores between the product and the mask: scale, softcap, bias.
#pragma once

#include "functions.hpp"
#include "layout.hpp"
#include "rows.hpp"

namespace headwise::HEADWISE_ISA_NAME {

HEADWISE_INLINE float bias_at(const Bias& bias, i64 place) {
  const char* data = static_cast<const char*>(bias.data);
  return bias.type == Type::f32 ? Raw::one(data + 4 * place) : one_bf16(data + 2 * place);
}

// out[key][row]: the bias of some rows and keys.
inline void read_bias(const Rows& rows, i64 start, int keys, float* out) {
  const Bias& bias = rows.problem.bias;
  const int size = bias.type == Type::f32 ? 4 : 2;
  i64 place[item_rows];
  bool same = bias.row == 0;  // one bias per key for all these rows
  for (int i = 0; i < rows.count; ++i) {
    place[i] = rows.batch * bias.batch + rows.head[i] * bias.head + rows.query[i] * bias.row + start * bias.column;
    same = same && place[i] == place[0];
  }
  if (same) {
    for (int k = 0; k < keys; ++k) {
      const Vector x = splat(bias_at(bias, place[0] + k * bias.column));
      for (int i = 0; i < item_rows; i += lanes) store(out + k * item_rows + i, x);
    }
  } else if (bias.column == 1) {
    const char* row[item_rows];
    for (int i = 0; i < rows.count; ++i) row[i] = static_cast<const char*>(bias.data) + place[i] * size;
    if (bias.type == Type::f32)
      pack<Raw>(row, rows.count, keys, out);
    else
      pack<Upcast>(row, rows.count, keys, out);
  } else {
    for (int i = 0; i < item_rows; ++i)
      for (int k = 0; k < keys; ++k)
        out[k * item_rows + i] = i < rows.count ? bias_at(bias, place[i] + k * bias.column) : 0.0f;
  }
}

// scores = log2(e) (softcap(scale scores) + bias), in place; -inf where the bias or the score is. A bias that
// is merely huge stays finite: a row of nothing but the lowest float attends evenly to all of it.
// `slope`: where given, filled with the derivative of the softcap, 1 - tanh^2.
inline void change_scores(const Problem& p, float* scores, const float* bias, int keys, int vectors, float* slope) {
  const Vector none = splat(-__builtin_inff()), lowest = splat(-largest_float);
  const bool capped = p.softcap > 0;
  const Vector inner = splat(static_cast<float>(capped ? p.scale / p.softcap : p.scale * 1.4426950408889634));
  const Vector outer = splat(static_cast<float>(p.softcap * 1.4426950408889634));
  for (int k = 0; k < keys; ++k)
    for (int v = 0; v < vectors; ++v) {
      const int at = k * item_rows + v * lanes;
      Vector s = load(scores + at) * inner;
      if (capped) {
        const Vector t = tanh(s);
        if (slope) store(slope + at, splat(1.0f) - t * t);
        s = t * outer;
      }
      if (bias) {
        const Vector b = load(bias + at);
        const Vector sum = fma(b, splat(log2_e), s);
        s = select((b == none) | (s == none), none, larger(lowest, sum));
      }
      store(scores + at, s);
    }
}

}  // namespace headwise::HEADWISE_ISA_NAME
