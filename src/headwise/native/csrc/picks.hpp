// Single keys that a row's statistics speak of: those at given offsets, and the heaviest.
#pragma once

#include "weigh.hpp"

namespace headwise::HEADWISE_ISA_NAME {

// Scores of one key of each row become weights. They are made as `weigh` makes them, so that the rounding of a large
// score is the same there and here; `inverse`: 1 / the sum of the weights, relative to `top`.
HEADWISE_INLINE void make_weights(const Softmax& softmax, int v, float scale, const float* inverse, float* scores) {
  const Vector p = exp2(fma(load(scores + v * lanes), splat(scale), -softmax.reference(v)));
  store(scores + v * lanes, p * load(inverse + v * lanes));
}

// Their scores are kept (without `scale`), so that nothing has to follow softmax's reference; they become weights
// when the rows are finished. Rows lie in lanes.
struct Picks {
  float* offset_scores;    // [offset_count][item_rows]
  float* top_scores;       // [listed][item_rows], falling
  std::int32_t* top_keys;  // [listed][item_rows]

  static constexpr int together = 8;  // entries of a list that lie in registers

  // How many are listed: whole registers of them.
  static i64 listed(const RowStatistics& ask) { return (ask.top_count + together - 1) / together * together; }

  void start(const RowStatistics& ask, int rows) {
    for (i64 i = 0; i < ask.offset_count * item_rows; ++i) offset_scores[i] = -__builtin_inff();
    for (i64 t = 0; t < listed(ask); ++t)
      for (i64 i = 0; i < item_rows; ++i) {
        top_scores[t * item_rows + i] = i < rows ? -__builtin_inff() : __builtin_inff();  // not there: nothing is above
        top_keys[t * item_rows + i] = -1;
      }
  }

  // Looks at a block before its scores become weights.
  void look(const RowStatistics& ask, const Rows& rows, const Seen& seen, const float* scores, const Spans* spans,
            i64 start, int keys, int vectors) {
    for (int o = 0; o < ask.offset_count; ++o) {
      const i64 first = rows.query[0] + ask.q_minus_k + ask.offsets[o] - start;
      if (first + seen.most_ahead < 0 || first + seen.least_ahead >= keys) continue;
      for (int i = 0; i < rows.count; ++i) {
        const i64 k = first + rows.query[i] - rows.query[0];
        if (k < 0 || k >= keys || !there(spans, static_cast<int>(k), i / lanes)) continue;
        offset_scores[o * item_rows + i] = scores[k * item_rows + i];
      }
    }
    if (!ask.top_count) return;
    for (int v = 0; v < vectors; ++v) {
      const float* last = top_scores + (listed(ask) - 1) * item_rows + v * lanes;
      for (int s = 0; s * strip_keys < keys; ++s)  // most strips hold nothing above what is listed
        if (any_above(load(seen.strip_best[s] + v * lanes), load(last)))
          list_strip(ask, v * lanes, scores + s * strip_keys * item_rows, start + s * strip_keys,
                     least(strip_keys, keys - s * strip_keys));
    }
  }

  // Scores become weights.
  void weigh(const RowStatistics& ask, const Softmax& softmax, float scale, const float* inverse, int vectors) {
    for (int v = 0; v < vectors; ++v) {
      for (i64 o = 0; o < ask.offset_count; ++o)
        make_weights(softmax, v, scale, inverse, offset_scores + o * item_rows);
      for (i64 t = 0; t < ask.top_count; ++t)
        make_weights(softmax, v, scale, inverse, top_scores + t * item_rows);
    }
  }

  // What others found of later keys.
  void add(const Picks& other, const RowStatistics& ask, int rows) {
    for (int i = 0; i < rows; i += lanes) {
      for (i64 o = 0; o < ask.offset_count; ++o) {
        float* mine = offset_scores + o * item_rows + i;
        store(mine, larger(load(mine), load(other.offset_scores + o * item_rows + i)));  // at most one saw the key
      }
      for (i64 t = 0; t < ask.top_count; ++t)
        insert(ask, i, load(other.top_scores + t * item_rows + i),
               load_whole(other.top_keys + t * item_rows + i));
    }
  }

 private:
  static HEADWISE_INLINE bool there(const Spans* spans, int k, int v) {
    const int s = k / strip_keys;
    return !spans || (v >= spans->first[s] && v < spans->last[s]);
  }

  // Some keys of a strip that one of a vector of rows may list.
  void list_strip(const RowStatistics& ask, int row, const float* scores, i64 first_key, int keys) {
    List list(*this, row);
    const bool alone = listed(ask) == together;
    for (int k = 0; k < keys; ++k) {
      const Vector score = load(scores + k * item_rows + row);
      const Whole key = splat_whole(static_cast<std::int32_t>(first_key) + k);
      if (alone && any_above(score, list.score[together - 1])) list.insert(score, key);
      if (!alone && any_above(score, load(top_scores + (listed(ask) - 1) * item_rows + row)))
        insert(ask, row, score, key);
    }
    if (alone) list.keep(*this, row);
  }

  // A part of the lists of a vector of rows, in registers.
  struct List {
    Vector score[together];
    Whole key[together];

    HEADWISE_INLINE List(const Picks& from, i64 at) {
#pragma GCC unroll 8
      for (int t = 0; t < together; ++t) {
        score[t] = load(from.top_scores + t * item_rows + at);
        key[t] = load_whole(from.top_keys + t * item_rows + at);
      }
    }

    HEADWISE_INLINE void keep(Picks& to, i64 at) const {
#pragma GCC unroll 8
      for (int t = 0; t < together; ++t) {
        store(to.top_scores + t * item_rows + at, score[t]);
        store_whole(to.top_keys + t * item_rows + at, key[t]);
      }
    }

    // Behind what is at least as large. What stands below moves down by one.
    HEADWISE_INLINE void insert(Vector s, Whole k) {
#pragma GCC unroll 8
      for (int t = together - 1; t > 0; --t) {
        const Whole above = s > score[t], above_next = s > score[t - 1];
        key[t] = above ? (above_next ? key[t - 1] : k) : key[t];
        score[t] = above ? (above_next ? score[t - 1] : s) : score[t];
      }
      key[0] = s > score[0] ? k : key[0];
      score[0] = s > score[0] ? s : score[0];
    }
  };

  // Part by part: what falls out of one goes to the next.
  HEADWISE_INLINE void insert(const RowStatistics& ask, i64 row, Vector score, Whole key) {
    for (i64 part = 0; part < listed(ask); part += together) {
      List list(*this, part * item_rows + row);
      const Vector last = list.score[together - 1];
      const Whole last_key = list.key[together - 1], falls = score > last;
      list.insert(score, key);
      list.keep(*this, part * item_rows + row);
      score = falls ? last : score;
      key = falls ? last_key : key;
    }
  }
};

}  // namespace headwise::HEADWISE_ISA_NAME
