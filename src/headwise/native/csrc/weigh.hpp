// From a block's scores to its weights, and what is observed on the way.
#pragma once

#include "softmax.hpp"

namespace headwise::HEADWISE_ISA_NAME {

// Sums of a row, relative to its `top` as softmax's own, and like those in near and far ones. Filled only where the
// call asks.
struct Seen {
  alignas(64) float entropy[item_rows];    // sum of 2^x x, x = scale s - top
  alignas(64) float distance[item_rows];   // sum of 2^x |lag - key|
  alignas(64) float far_entropy[item_rows];
  alignas(64) float far_distance[item_rows];
  alignas(64) float lag[item_rows];        // position of the query minus that of the block's first key
  alignas(64) float best[item_rows];       // the largest scale s so far
  alignas(64) std::int32_t best_key[item_rows];

  void start() {
    for (int i = 0; i < item_rows; i += lanes) {
      store(entropy + i, Vector{});
      store(distance + i, Vector{});
      store(far_entropy + i, Vector{});
      store(far_distance + i, Vector{});
      store(best + i, splat(-__builtin_inff()));
      store_whole(best_key + i, splat_whole(-1));
    }
  }

  void settle() {
    join();
    for (int i = 0; i < item_rows; i += lanes) {
      store(far_entropy + i, load(entropy + i));
      store(far_distance + i, load(distance + i));
      store(entropy + i, Vector{});
      store(distance + i, Vector{});
    }
  }

  void join() {
    for (int i = 0; i < item_rows; i += lanes) {
      store(entropy + i, load(far_entropy + i) + load(entropy + i));
      store(distance + i, load(far_distance + i) + load(distance + i));
    }
  }

  // As sums do when `top` moves: 2^x x becomes alpha 2^x (x + shift).
  void follow(const Softmax& softmax, int vectors) {
    for (int i = 0; i < vectors * lanes; i += lanes) {
      const Vector alpha = load(softmax.alpha + i), shift = load(softmax.shift + i);
      // (The sums already have their alpha.)
      store(entropy + i, fma(load(entropy + i), alpha, shift * load(softmax.sum + i)));
      store(far_entropy + i, fma(load(far_entropy + i), alpha, shift * load(softmax.far + i)));
      store(distance + i, load(distance + i) * alpha);
      store(far_distance + i, load(far_distance + i) * alpha);
    }
  }

  // Where a block's best is above all before: which key it is, the first of equals.
  void find_keys(const float* scores, float scale, const Softmax& softmax, const Spans* spans, int keys, int vectors,
                 i64 first_key) {
    for (int v = 0; v < vectors; ++v) {
      const Vector now = load(softmax.best + v * lanes), old = load(best + v * lanes);
      const Whole above = now > old;
      if (!any(above)) continue;
      Whole place = splat_whole(-1);
      for (int k = keys - 1; k >= 0; --k) {
        if (spans && (v < spans->first[k / strip_keys] || v >= spans->last[k / strip_keys])) continue;
        const Whole here = load(scores + k * item_rows + v * lanes) * splat(scale) == now;
        place = (here & splat_whole(static_cast<std::int32_t>(first_key) + k)) | (~here & place);
      }
      store(best + v * lanes, select(above, now, old));
      const Whole before = load_whole(best_key + v * lanes);
      store_whole(best_key + v * lanes, (above & place) | (~above & before));
    }
  }
};

// The parts of dropout's hash, and its threshold.
struct Chances {
  alignas(64) std::uint32_t row[item_rows];
  std::uint32_t key[tile_keys];
  std::int32_t below;

  void start(const Problem& p, const Rows& rows) {
    below = drop_below(p.dropout.rate);
    for (int i = 0; i < item_rows; ++i)
      row[i] = i < rows.count ? row_hash(p, rows.batch, rows.head[i], rows.query[i]) : 0;
  }

  void block(const Problem& p, i64 first_key, int keys) {
    for (int k = 0; k < keys; ++k) key[k] = key_hash(p, first_key + k);
  }

  // -1 in the lanes whose weight stays.
  HEADWISE_INLINE Whole keep(int k, int vector) const {
    Positive hash;
    std::memcpy(&hash, row + vector * lanes, sizeof hash);
    const Positive mixed = mix(hash ^ (key[k] - Positive{}));
    return reinterpret_cast<Whole>(mixed) >= splat_whole(below);
  }
};

// scores -> weights before normalization, in place (with Format::together == 2 as pairs of keys, each in the
// room of the first). Keys outside `spans` get 0. `chances`: weights that dropout takes are 0 in the result,
// but not in the sums.
template <class Format, bool Look, bool Drop>
inline void weigh(float* scores, float scale, const Spans* spans, int keys, int vectors, Softmax& softmax, Seen* seen,
                  const Chances* chances) {
  constexpr int step = Format::together;
  const Vector factor = splat(scale);
  for (int v = 0; v < vectors; ++v) {
    float* column = scores + v * lanes;
    const Vector minus = -softmax.reference(v);
    Vector sum{}, entropy{}, distance{}, lag{};
    if (Look) lag = load(seen->lag + v * lanes);
    for (int start = 0; start < keys; start += strip_keys) {
      const int stop = least(start + strip_keys, keys), s = start / strip_keys;
      if (spans && (v < spans->first[s] || v >= spans->last[s])) {
        for (int k = start; k < stop; k += step) store(column + k / step * item_rows, Vector{});
        continue;
      }
      Vector strip{}, strip_entropy{}, strip_distance{};
      for (int k = start; k < stop; k += step) {
        Vector weight[2];
        for (int t = 0; t < step; ++t) {
          if (k + t >= keys) {
            weight[t] = Vector{};
            continue;
          }
          const Vector x = fma(load(column + (k + t) * item_rows), factor, minus);
          const Vector p = exp2(x);
          strip += p;
          if (Look) {
            strip_entropy = fma(p, larger(x, splat(-200.0f)), strip_entropy);  // 2^-200 is 0, and 0 times -inf is NaN
            const Vector gap = lag - splat(static_cast<float>(k + t));
            strip_distance = fma(p, as_floats(bits_of(gap) & 0x7FFFFFFF), strip_distance);
          }
          weight[t] = Drop ? as_floats(bits_of(p) & chances->keep(k + t, v)) : p;
        }
#if defined(__AVX512BF16__)
        if constexpr (step == 2) weight[0] = pair_up(weight[0], weight[1]);
#endif
        store(column + k / step * item_rows, weight[0]);
      }
      sum += strip;
      if (Look) entropy += strip_entropy, distance += strip_distance;
    }
    store(softmax.sum + v * lanes, load(softmax.sum + v * lanes) + sum);
    if (Look) {
      store(seen->entropy + v * lanes, load(seen->entropy + v * lanes) + entropy);
      store(seen->distance + v * lanes, load(seen->distance + v * lanes) + distance);
    }
  }
}

}  // namespace headwise::HEADWISE_ISA_NAME
