// What is summed of a row's weights while they are made, and where the largest is.
#pragma once

#include "softmax.hpp"

namespace headwise::HEADWISE_ISA_NAME {

// Which sums a call needs.
enum class Look {
  nothing,
  sums,    // entropy and distance
  moments  // those of the keys' places too
};

// Sums are relative to softmax's `top` as its own, and like those in near and far ones. Filled only where the call
// asks.
//
// The variance of places is taken from sums about a centre, the row's heaviest key so far: no other choice made on
// the way is as near to the mean, where it matters. With weight P_c there and the mean m, the variance is at least
// P_c (c - m)^2, so that what cancels in E[(j - c)^2] - (m - c)^2 is bounded, and where one key has nearly all of
// the weight, nothing does.
struct Seen {
  alignas(64) float entropy[item_rows];   // sum of 2^x x, x = scale s - top
  alignas(64) float distance[item_rows];  // sum of 2^x |lag - key|
  alignas(64) float first[item_rows];     // sum of 2^x (key - best_key)
  alignas(64) float second[item_rows];    // sum of 2^x (key - best_key)^2
  alignas(64) float far_entropy[item_rows];
  alignas(64) float far_distance[item_rows];
  alignas(64) float far_first[item_rows];
  alignas(64) float far_second[item_rows];
  alignas(64) float ahead[item_rows];   // position of the query minus that of the first one
  alignas(64) float lag[item_rows];     // position of the query minus that of the block's first key
  alignas(64) float centre[item_rows];  // best_key minus the block's first key
  alignas(64) float strip_best[tile_keys / strip_keys][item_rows];  // of the present block: each strip's largest score
  alignas(64) float best[item_rows];    // the largest score so far (without `scale`)
  alignas(64) std::int32_t best_key[item_rows];

  i64 least_ahead, most_ahead;

  void start(const Rows& rows) {
    least_ahead = most_ahead = 0;
    for (int i = 0; i < item_rows; ++i) {
      const i64 apart = i < rows.count ? rows.query[i] - rows.query[0] : 0;
      ahead[i] = static_cast<float>(apart);
      least_ahead = least(least_ahead, apart);
      most_ahead = most(most_ahead, apart);
    }
    float* const sums[] = {entropy, distance, first, second, far_entropy, far_distance, far_first, far_second};
    for (int i = 0; i < item_rows; i += lanes) {
      for (float* sum : sums)
        store(sum + i, Vector{});
      store(best + i, splat(-__builtin_inff()));
      store_whole(best_key + i, splat_whole(-1));
    }
  }

  void settle() {
    put_aside(entropy, far_entropy, true, item_rows);
    put_aside(distance, far_distance, true, item_rows);
    put_aside(first, far_first, true, item_rows);
    put_aside(second, far_second, true, item_rows);
  }

  void join() {
    bring_back(far_entropy, entropy, item_rows);
    bring_back(far_distance, distance, item_rows);
    bring_back(far_first, first, item_rows);
    bring_back(far_second, second, item_rows);
  }

  // As sums do when `top` moves: 2^x x becomes alpha 2^x (x + shift).
  void follow(const Softmax& softmax, int vectors) {
    float* const sums[] = {distance, far_distance, first, second, far_first, far_second};
    for (int i = 0; i < vectors * lanes; i += lanes) {
      const Vector alpha = load(softmax.alpha + i), shift = load(softmax.shift + i);
      // (The sums already have their alpha.)
      store(entropy + i, fma(load(entropy + i), alpha, shift * load(softmax.sum + i)));
      store(far_entropy + i, fma(load(far_entropy + i), alpha, shift * load(softmax.far + i)));
      for (float* sum : sums)
        store(sum + i, load(sum + i) * alpha);
    }
  }

  // The next block begins so many keys before the first query.
  void begin_block(i64 first_lag, int vectors) {
    for (int i = 0; i < vectors * lanes; i += lanes) store(lag + i, load(ahead + i) + splat(static_cast<float>(first_lag)));
  }

  // The block's largest scores, of each strip, and scaled of each row (as softmax's `find_best`; scale >= 0).
  void find_best(const float* scores, float scale, const Spans* spans, int keys, int vectors, float* block_best) {
    const Vector none = splat(-__builtin_inff());
    for (int v = 0; v < vectors; ++v) {
      Vector high = none;
      for (int s = 0; s * strip_keys < tile_keys; ++s) {
        Vector strip = none;
        if (!spans || (v >= spans->first[s] && v < spans->last[s]))
          for (int k = s * strip_keys; k < least((s + 1) * strip_keys, keys); ++k)
            strip = larger(load(scores + k * item_rows + v * lanes), strip);
        store(strip_best[s] + v * lanes, strip);
        high = larger(strip, high);
      }
      store(block_best + v * lanes, high == none ? high : high * splat(scale));
    }
  }

  // Where a block's best is above all before: which key it is, the first of equals. What was summed about another
  // centre is then about this one.
  void find_keys(const float* scores, const Softmax& softmax, int keys, int vectors, i64 first_key) {
    for (int v = 0; v < vectors; ++v) {
      const Whole before = load_whole(best_key + v * lanes);
      Vector high = load(best + v * lanes);
      Whole key = before;
      for (int s = 0; s * strip_keys < keys; ++s) {
        const Vector now = load(strip_best[s] + v * lanes);
        if (!any_above(now, high)) continue;
        Whole place{};
        // (Of a strip that isn't full, what lies behind its keys is looked at too: the key itself comes later.)
#pragma GCC unroll 16
        for (int k = strip_keys - 1; k >= 0; --k)
          place = load(scores + (s * strip_keys + k) * item_rows + v * lanes) == now ? splat_whole(k) : place;
        const Whole above = now > high;
        key = above ? place + splat_whole(static_cast<std::int32_t>(first_key) + s * strip_keys) : key;
        high = select(above, now, high);
      }
      const Whole moved = key != before;
      if (any(moved)) {
        store(best + v * lanes, high);
        store_whole(best_key + v * lanes, key);
        const Vector apart = __builtin_convertvector(before - key, Vector);
        recentre(first, second, softmax.sum, v * lanes, apart);
        recentre(far_first, far_second, softmax.far, v * lanes, apart);
      }
      store(centre + v * lanes, __builtin_convertvector(key - splat_whole(static_cast<std::int32_t>(first_key)), Vector));
    }
  }

  // What another found of later keys, both relative to the same top; `sum`s: the weights of each.
  void add_moments(Seen& other, const float* sum, const float* other_sum, int rows) {
    for (int i = 0; i < rows; i += lanes) {
      const Whole key = load_whole(best_key + i), their_key = load_whole(other.best_key + i);
      const Vector high = load(best + i), theirs = load(other.best + i);
      const Whole above = theirs > high;  // equals: the earlier key
      const Whole chosen = select(above, their_key, key);
      recentre(first, second, sum, i, __builtin_convertvector(key - chosen, Vector));
      recentre(other.first, other.second, other_sum, i, __builtin_convertvector(their_key - chosen, Vector));
      store(first + i, load(first + i) + load(other.first + i));
      store(second + i, load(second + i) + load(other.second + i));
      store(best + i, select(above, theirs, high));
      store_whole(best_key + i, chosen);
    }
  }

  // Sums about a place c, of the weight `sum`, become sums about c - apart.
  static void recentre(float* first, float* second, const float* sum, int at, Vector apart) {
    const Vector mass = load(sum + at), old = load(first + at);
    store(second + at, fma(apart, fma(apart, mass, old + old), load(second + at)));
    store(first + at, fma(apart, mass, old));
  }
};

}  // namespace headwise::HEADWISE_ISA_NAME
