// Single keys that a row's statistics speak of: those at given offsets, and the heaviest.
#pragma once

#include "weigh.hpp"

namespace headwise::HEADWISE_ISA_NAME {

// Their scores are kept (scale s, in powers of two), so that nothing has to follow softmax's reference; they
// become weights when the row is finished.
struct Picks {
  float* offset_scores;    // [offset_count][item_rows]
  float* top_scores;       // [item_rows][top_count], falling
  std::int64_t* top_keys;  // [item_rows][top_count]

  void start(const RowStatistics& ask) {
    for (i64 i = 0; i < ask.offset_count * item_rows; ++i) offset_scores[i] = -__builtin_inff();
    for (i64 i = 0; i < ask.top_count * item_rows; ++i) {
      top_scores[i] = -__builtin_inff();
      top_keys[i] = -1;
    }
  }

  // Looks at a block before its scores become weights.
  void look(const RowStatistics& ask, const Rows& rows, const float* scores, float scale, const Spans* spans, i64 start,
            int keys) {
    for (int o = 0; o < ask.offset_count; ++o)
      for (int i = 0; i < rows.count; ++i) {
        const i64 k = rows.query[i] + ask.q_minus_k + ask.offsets[o] - start;
        if (k < 0 || k >= keys || !there(spans, static_cast<int>(k), i)) continue;
        offset_scores[o * item_rows + i] = scores[k * item_rows + i] * scale;
      }
    if (!ask.top_count) return;
    alignas(64) float least_of_top[item_rows];
    for (int i = 0; i < item_rows; ++i)
      least_of_top[i] = i < rows.count ? top_scores[(i + 1) * ask.top_count - 1] : __builtin_inff();
    for (int k = 0; k < keys; ++k)
      for (int v = 0; v * lanes < rows.count; ++v) {
        if (!there(spans, k, v * lanes)) continue;
        const Vector s = load(scores + k * item_rows + v * lanes) * splat(scale);
        if (!any(s > load(least_of_top + v * lanes))) continue;
        for (int i = v * lanes; i < least((v + 1) * lanes, rows.count); ++i) {
          const float score = scores[k * item_rows + i] * scale;
          if (!(score > least_of_top[i])) continue;
          insert(ask.top_count, i, score, start + k);
          least_of_top[i] = top_scores[(i + 1) * ask.top_count - 1];
        }
      }
  }

  // One row of what others found of later keys.
  void add(const Picks& other, const RowStatistics& ask, int row) {
    for (int o = 0; o < ask.offset_count; ++o) {
      float& mine = offset_scores[o * item_rows + row];
      mine = most(mine, other.offset_scores[o * item_rows + row]);  // at most one of them saw the key
    }
    for (int t = 0; t < ask.top_count; ++t) {
      const float score = other.top_scores[row * ask.top_count + t];
      if (!(score > top_scores[(row + 1) * ask.top_count - 1])) break;
      insert(ask.top_count, row, score, other.top_keys[row * ask.top_count + t]);
    }
  }

 private:
  static HEADWISE_INLINE bool there(const Spans* spans, int k, int row) {
    const int s = k / strip_keys, v = row / lanes;
    return !spans || (v >= spans->first[s] && v < spans->last[s]);
  }

  void insert(int count, int row, float score, i64 key) {
    float* scores = top_scores + row * count;
    std::int64_t* keys = top_keys + row * count;
    int at = count - 1;
    for (; at > 0 && scores[at - 1] < score; --at) {
      scores[at] = scores[at - 1];
      keys[at] = keys[at - 1];
    }
    scores[at] = score;
    keys[at] = key;
  }
};

}  // namespace headwise::HEADWISE_ISA_NAME
