// A tile of the backward pass: from scores and weight gradients to weights and score gradients.
#pragma once

#include "weigh.hpp"

namespace headwise::HEADWISE_ISA_NAME {

// sum_c x_c y_c of two rows.
template <class Format>
HEADWISE_INLINE float dot(const char* x, const char* y, i64 columns) {
  Vector sum{};
  i64 c = 0;
  for (; c + lanes <= columns; c += lanes)
    sum = Format::size == 4
              ? fma(load(reinterpret_cast<const float*>(x) + c), load(reinterpret_cast<const float*>(y) + c), sum)
              : fma(load_bf16(x + 2 * c), load_bf16(y + 2 * c), sum);
  float total = sum_of(sum);
  for (; c < columns; ++c)
    total += Format::size == 4 ? Raw::one(x + 4 * c) * Raw::one(y + 4 * c) : one_bf16(x + 2 * c) * one_bf16(y + 2 * c);
  return total;
}

// What a row's weight gradients lose: sum_j P_ij dP_ij = out_i . d_out_i (dropout or not), less d_lse.
template <class Format>
HEADWISE_INLINE float delta_of(const BackwardArguments& a, i64 b, i64 h, i64 i) {
  const float all = dot<Format>(row_of(a.out, b, h, i, Format::size), row_of(a.d_out, b, h, i, Format::size), a.d_v);
  return a.d_lse ? all - a.d_lse[(b * a.heads + h) * a.q_len + i] : all;
}

// What is known of each query row. Those that are not there are as rows that attend to nothing.
struct RowGrads {
  alignas(64) float lse[item_rows];
  alignas(64) float whole[item_rows];  // the same in powers of two; huge where the row attends to nothing
  alignas(64) float rest[item_rows];   // 2 to the power of what rounding it has added
  alignas(64) float delta[item_rows];  // sum_j P_ij dP_ij - d_lse

  // Rows first .. first + count - 1 of a head.
  template <class Format>
  void start(const BackwardArguments& a, i64 b, i64 h, i64 first, int count) {
    const i64 place = (b * a.heads + h) * a.q_len + first;
    for (int i = 0; i < item_rows; ++i) lse[i] = -__builtin_inff(), delta[i] = 0;
    std::memcpy(lse, a.lse + place, sizeof(float) * static_cast<std::size_t>(count));
    for (int i = 0; i < item_rows; ++i) {  // without branches: the compiler makes vectors of it
      const bool dead = lse[i] == -__builtin_inff();
      const double exact = lse[i] * 1.4426950408889634;
      const float rounded = static_cast<float>(exact);
      whole[i] = dead ? largest_float : rounded;
      // 2^x of a small x: 1 + x ln 2.
      rest[i] = dead ? 1.0f : static_cast<float>(1 + (rounded - exact) * 0.693147180559945309417);
    }
    for (int i = 0; i < count; ++i) delta[i] = delta_of<Format>(a, b, h, first + i);
  }
};

// Tiles lie as [key][row]. For products with bf16 pairs, weights and score gradients are written as bf16 too:
// natural ones are read along rows (dV, dK), those of paired keys along keys (dQ).
struct TileGrads {
  float *scores, *d_weights;         // in; out: weights (after dropout), score gradients
  float* slope;                      // of the softcap, or nullptr
  float* d_bias;                     // out, if not nullptr: the gradient of the bias
  std::uint16_t *weights, *natural;  // out, with pairs: [key][item_rows]
  float* paired;                     // out, with pairs: [key / 2][item_rows]
};

#if defined(__AVX512BF16__)
HEADWISE_INLINE void store_half(std::uint16_t* at, Vector x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
}
#endif

// P = 2^(scale s - whole), dS = P (dP - delta), with what dropout and softcap do to them; 0 outside `spans`.
template <class Format, bool Drop>
inline void differentiate(const TileGrads& t, float scale, const Spans* spans, int keys, int vectors,
                          const RowGrads& rows, const Chances* chances, float kept) {
  constexpr int step = Format::together;
  for (int v = 0; v < vectors; ++v) {
    const Vector minus = -load(rows.whole + v * lanes), rest = load(rows.rest + v * lanes);
    const Vector delta = load(rows.delta + v * lanes);
    for (int k = 0; k < keys; k += step) {
      const int s = k / strip_keys;
      const bool there = !spans || (v >= spans->first[s] && v < spans->last[s]);
      [[maybe_unused]] Vector both[2] = {Vector{}, Vector{}};
      for (int n = 0; n < step; ++n) {
        if (k + n >= keys) continue;
        const int at = (k + n) * item_rows + v * lanes;
        Vector p{}, d{};
        if (there) {
          p = exp2(fma(load(t.scores + at), splat(scale), minus)) * rest;
          d = load(t.d_weights + at);
          Vector dropped = p;
          if (Drop) {
            const Whole keep = chances->keep(k + n, v);
            d = as_floats(bits_of(d * splat(kept)) & keep);
            dropped = as_floats(bits_of(p * splat(kept)) & keep);
          }
          d = p * (d - delta);
          p = dropped;
        }
        if (t.d_bias) store(t.d_bias + at, d);
        if (t.slope && there) d = d * load(t.slope + at);
        both[n] = d;
        if (step == 1) {
          store(t.scores + at, p);
          store(t.d_weights + at, d);
        }
#if defined(__AVX512BF16__)
        if constexpr (step == 2) {
          store_half(t.weights + at, p);
          store_half(t.natural + at, d);
        }
#endif
      }
#if defined(__AVX512BF16__)
      if constexpr (step == 2) store(t.paired + k / 2 * item_rows + v * lanes, pair_up(both[0], both[1]));
#endif
    }
  }
}

}  // namespace headwise::HEADWISE_ISA_NAME
