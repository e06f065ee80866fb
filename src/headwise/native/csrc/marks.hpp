// The mass on marked keys: sums of the weights of those that bear the same mark.
#pragma once

#include "seen.hpp"

namespace headwise::HEADWISE_ISA_NAME {

// Sums relative to softmax's `top`, in near and far ones as its own. Of a block, only the weights of marked keys
// are made here: mostly few. Rows lie in lanes.
struct Marks {
  float* mass;  // [mark_columns][item_rows]
  float* far;   // the same

  void start(const RowStatistics& ask) {
    for (i64 i = 0; i < ask.mark_columns * item_rows; i += lanes) store(mass + i, Vector{}), store(far + i, Vector{});
  }

  void settle(const RowStatistics& ask) { put_aside(mass, far, true, ask.mark_columns * item_rows); }

  void join(const RowStatistics& ask) {
    bring_back(far, mass, ask.mark_columns * item_rows);
  }

  void follow(const RowStatistics& ask, const Softmax& softmax) {
    for (i64 c = 0; c < ask.mark_columns * item_rows; c += item_rows)
      for (int i = 0; i < item_rows; i += lanes) {
        const Vector alpha = load(softmax.alpha + i);
        store(mass + c + i, load(mass + c + i) * alpha);
        store(far + c + i, load(far + c + i) * alpha);
      }
  }

  // Looks at a block before its scores become weights.
  void look(const Problem& p, const RowStatistics& ask, i64 batch, const Softmax& softmax, const float* scores,
            float scale, const Spans* spans, i64 start, int keys, int vectors) {
    for (i64 set = 0; set < ask.mark_sets; ++set) {
      alignas(64) std::int32_t mark[tile_keys];
      std::memcpy(mark, ask.marks_of(p, set, batch) + start, 4 * static_cast<std::size_t>(keys));
      for (int k = keys; k < tile_keys; ++k) mark[k] = -1;
      for (std::uint64_t left = where(mark, -1, true); left;) {
        const std::int32_t column = mark[__builtin_ctzll(left)];
        const std::uint64_t same = where(mark, column, false);
        left &= ~same;
        if (column < 0 || column >= ask.mark_columns) continue;  // whoever marked them may have changed their mind
        for (int v = 0; v < vectors; ++v) add(same, softmax, scores, scale, spans, v, mass + column * item_rows);
      }
    }
  }

 private:
  // The keys whose mark is `value`, or isn't.
  static std::uint64_t where(const std::int32_t* mark, std::int32_t value, bool others) {
    std::uint64_t bits = 0;
    for (int k = 0; k < tile_keys; k += lanes)
      bits |= static_cast<std::uint64_t>(bits_of_mask(load_whole(mark + k) == splat_whole(value))) << k;
    return others ? ~bits : bits;
  }

  // The weights of some keys, in strips as elsewhere.
  static HEADWISE_INLINE void add(std::uint64_t some, const Softmax& softmax, const float* scores, float scale,
                                  const Spans* spans, int v, float* to) {
    const Vector minus = -softmax.reference(v), factor = splat(scale);
    Vector sum{};
    for (int s = 0; s < tile_keys / strip_keys; ++s) {
      if (spans && (v < spans->first[s] || v >= spans->last[s])) continue;
      Vector strip{};
      for (std::uint64_t left = some >> (s * strip_keys) & 0xFFFF; left; left &= left - 1) {
        const int k = s * strip_keys + __builtin_ctzll(left);
        strip += exp2(fma(load(scores + k * item_rows + v * lanes), factor, minus));
      }
      sum += strip;
    }
    store(to + v * lanes, load(to + v * lanes) + sum);
  }
};

}  // namespace headwise::HEADWISE_ISA_NAME
