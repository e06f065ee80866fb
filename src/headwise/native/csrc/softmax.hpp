// Softmax over blocks of keys, with rows in lanes: a reference maximum that moves seldom, and the sums.
#pragma once

#include "chance.hpp"
#include "functions.hpp"
#include "layout.hpp"
#include "rows.hpp"

namespace headwise::HEADWISE_ISA_NAME {

// Adds sums to those of earlier blocks (the first to nothing), and lets them begin again at 0.
inline void put_aside(float* sum, float* to, bool add, i64 count) {
  for (i64 n = 0; n < count; n += lanes) {
    store(to + n, add ? load(to + n) + load(sum + n) : load(sum + n));
    store(sum + n, Vector{});
  }
}

// Adds to sums those that were put aside.
inline void bring_back(const float* from, float* sum, i64 count) {
  for (i64 n = 0; n < count; n += lanes) store(sum + n, load(from + n) + load(sum + n));
}

// Scores and weights of a block lie as [key][row], item_rows apart.
//
// All numbers are in powers of two: weights are 2^(scale s - top). `top` is a row's maximum when it last
// moved; it moves only where a score exceeds it by more than some slack, so most blocks need no correction.
//
// A float32 sum of very many equal numbers drifts: each addition is rounded in the same direction. So nothing is
// added one by one to what has grown: strips of 16 keys are summed from 0, tiles from their strips, `near_tiles`
// tiles in `sum`, and those sums in `far`.
//
// Where products take weights as bf16, `rounded` is the sum of what they take. Outputs are divided by it: what
// rounding adds to a weight then stands above and below the line, and where one key has nearly all the weight,
// nothing of it is left. (The log-sum-exp is that of the weights as they are.) There `top` follows without slack: then
// the heaviest weight of a block where it moves is 1, which rounding leaves as it is.
struct Softmax {
  static constexpr float slack = 8;  // of float32 weights

  alignas(64) float top[item_rows];    // -inf: nothing yet
  alignas(64) float sum[item_rows];    // of 2^(scale s - top), since the last `settle`
  alignas(64) float far[item_rows];    // and before it
  alignas(64) float rounded[item_rows], far_rounded[item_rows];
  alignas(64) float best[item_rows];   // of the present block: its largest scale s
  alignas(64) float alpha[item_rows];  // if top moved: by which sums so far are multiplied,
  alignas(64) float shift[item_rows];  // and its logarithm (0 where there were none)

  void start() {
    const Vector none = splat(-__builtin_inff());
    float* const sums[] = {sum, far, rounded, far_rounded};
    for (int i = 0; i < item_rows; i += lanes) {
      store(top + i, none);
      for (float* x : sums) store(x + i, Vector{});
    }
  }

  void settle() {
    put_aside(sum, far, true, item_rows);
    put_aside(rounded, far_rounded, true, item_rows);
  }

  // All in `sum` at last.
  void join() {
    bring_back(far, sum, item_rows);
    bring_back(far_rounded, rounded, item_rows);
  }

  // Lets `top` follow the block's `best`. True where sums and outputs so far must be multiplied by alpha.
  template <class Format>
  bool follow(int vectors) {
    const Vector ahead = splat(Format::together == 2 ? 0 : slack);
    bool moved = false;
    float* const sums[] = {sum, far, rounded, far_rounded};
    for (int v = 0; v < vectors; ++v) {
      const Vector now = load(best + v * lanes), old = load(top + v * lanes);
      const Whole above = now > old + ahead;
      if (!any(above)) {
        store(alpha + v * lanes, splat(1.0f));
        store(shift + v * lanes, Vector{});
        continue;
      }
      const Vector factor = select(above, exp2(old - now), splat(1.0f));
      store(alpha + v * lanes, factor);
      store(shift + v * lanes, select(above & (old > splat(-largest_float)), old - now, Vector{}));
      for (float* x : sums) store(x + v * lanes, load(x + v * lanes) * factor);
      store(top + v * lanes, select(above, now, old));
      moved = true;
    }
    return moved;
  }

  // What is subtracted: finite, so that -inf - reference is -inf.
  HEADWISE_INLINE Vector reference(int vector) const {
    return larger(load(top + vector * lanes), splat(-largest_float));
  }
};

// Which numbers of the block take part: in each strip of 16 keys the vectors first .. last - 1.
constexpr int strip_keys = 16;

struct Spans {
  std::uint8_t first[tile_keys / strip_keys], last[tile_keys / strip_keys];
};

inline Spans spans_of(const TileMask& mask, int keys) {
  Spans spans{};
  for (int s = 0; s * strip_keys < keys; ++s) {
    std::uint64_t some = 0;
    for (int k = s * strip_keys; k < least((s + 1) * strip_keys, keys); ++k) some |= mask.by_key[k];
    if (!some) continue;
    spans.first[s] = static_cast<std::uint8_t>(__builtin_ctzll(some) / lanes);
    spans.last[s] = static_cast<std::uint8_t>((63 - __builtin_clzll(some)) / lanes + 1);
  }
  return spans;
}

// Scores become -inf where the mask has no bit.
inline void hide(float* scores, const TileMask& mask, const Spans& spans, int keys) {
  const Vector none = splat(-__builtin_inff());
  for (int k = 0; k < keys; ++k) {
    const int s = k / strip_keys;
    for (int v = spans.first[s]; v < spans.last[s]; ++v) {
      const std::uint32_t bits = static_cast<std::uint32_t>(mask.by_key[k] >> (v * lanes)) & ((1ull << lanes) - 1);
      float* at = scores + k * item_rows + v * lanes;
      store(at, select_bits(bits, load(at), none));
    }
  }
}

// best[row] = scale max over the block's keys. (scale >= 0)
inline void find_best(const float* scores, float scale, const Spans* spans, int keys, int vectors, float* best) {
  for (int v = 0; v < vectors; ++v) {
    Vector high = splat(-__builtin_inff());
    if (!spans) {
      for (int k = 0; k < keys; ++k) high = larger(load(scores + k * item_rows + v * lanes), high);
    } else {
      for (int k = 0; k < keys; ++k)
        if (v >= spans->first[k / strip_keys] && v < spans->last[k / strip_keys])
          high = larger(load(scores + k * item_rows + v * lanes), high);
    }
    store(best + v * lanes, high == splat(-__builtin_inff()) ? high : high * splat(scale));
  }
}

// Whether outputs are divided by `rounded`. (What dropout takes is no more among the weights that products take.)
template <class Format>
HEADWISE_INLINE bool by_rounded(const Problem& p) {
  return Format::together == 2 && p.dropout.rate <= 0;
}

// Adds up a block's weights as products take them: pairs of keys, [key / 2][row].
template <class Format>
inline void add_rounded(const float* weights, int keys, int vectors, Softmax& softmax) {
  if constexpr (Format::together == 2) {
    const Vector ones = as_floats(splat_whole(0x3F803F80));  // two of bf16
    for (int v = 0; v < vectors; ++v) {
      Vector sum{};
      for (int k = 0; k < keys; k += 2)
        sum = Format::Entry::add(load(weights + k / 2 * item_rows + v * lanes), ones, sum);
      store(softmax.rounded + v * lanes, load(softmax.rounded + v * lanes) + sum);
    }
  }
}

}  // namespace headwise::HEADWISE_ISA_NAME
