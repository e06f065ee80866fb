// From a block's scores to its weights, and what is observed on the way.
#pragma once

#include "seen.hpp"

namespace headwise::HEADWISE_ISA_NAME {

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

// What a strip of keys adds to a row's sums.
struct StripSums {
  Vector weight{}, entropy{}, distance{}, first{}, second{};
};

// Places of a block's keys, and of a strip's about its middle, to be read as broadcast numbers.
struct Places {
  alignas(64) float key[tile_keys];
  alignas(64) float apart[strip_keys], square[strip_keys];
};

constexpr float half_strip = (strip_keys - 1) * 0.5f;

constexpr Places places = [] {
  Places p{};
  for (int k = 0; k < tile_keys; ++k) p.key[k] = static_cast<float>(k);
  for (int k = 0; k < strip_keys; ++k) {
    p.apart[k] = static_cast<float>(k) - half_strip;
    p.square[k] = p.apart[k] * p.apart[k];
  }
  return p;
}();

// What is summed key by key of a strip. All else is made from moments about its middle.
enum class Each {
  none,
  moment,   // where the centre lies near
  distance  // and where the query does, both
};

// The keys `start` .. `stop` - 1 of a vector of rows: scores -> weights in place, and their sums.
template <class Format, Look look, bool Drop, Each each>
HEADWISE_INLINE StripSums weigh_strip(float* column, Vector factor, Vector minus, int start, int stop, int keys, int v,
                                      Vector lag, Vector centre, const Chances* chances) {
  constexpr int step = Format::together;
  constexpr bool moments = look == Look::moments;
  StripSums sums;
  for (int k = start; k < stop; k += step) {
    Vector weight[2];
    for (int t = 0; t < step; ++t) {
      if (k + t >= keys) {
        weight[t] = Vector{};
        continue;
      }
      const Vector x = fma(load(column + (k + t) * item_rows), factor, minus);
      const Vector p = exp2(x);
      sums.weight += p;
      if (look != Look::nothing) sums.entropy = fma(p, larger(x, splat(-200.0f)), sums.entropy);  // 0 times -inf is NaN
      if (look != Look::nothing && each == Each::distance)
        sums.distance = fma(p, as_floats(bits_of(lag - splat(places.key[k + t])) & 0x7FFFFFFF), sums.distance);
      if (moments && each != Each::none) {
        const Vector apart = splat(places.key[k + t]) - centre, part = p * apart;
        sums.first += part;
        sums.second = fma(part, apart, sums.second);
      }
      if (look != Look::nothing && each == Each::none) {
        sums.first = fma(p, splat(places.apart[k + t - start]), sums.first);
        if (moments) sums.second = fma(p, splat(places.square[k + t - start]), sums.second);
      }
      weight[t] = Drop ? as_floats(bits_of(p) & chances->keep(k + t, v)) : p;
    }
#if defined(__AVX512BF16__)
    if constexpr (step == 2) weight[0] = pair_up(weight[0], weight[1]);
#endif
    store(column + k / step * item_rows, weight[0]);
  }
  return sums;
}

// From the moments about a place that lies `behind` the query: the sum of distances, of keys that all lie on one side
// of it, as the strip's middle does. The place is near, so little cancels.
HEADWISE_INLINE Vector distances(const StripSums& sums, Vector behind, Vector middle_behind) {
  const Whole sign = bits_of(middle_behind) & static_cast<std::int32_t>(0x80000000);
  return as_floats(bits_of(fma(behind, sums.weight, -sums.first)) ^ sign);
}

// Moments about a strip's middle become moments about a place that lies so far ahead of it, and isn't near.
HEADWISE_INLINE void move_moments(StripSums& sums, Vector ahead) {
  const Vector moved = ahead * sums.weight, first = sums.first;
  sums.first = first - moved;
  sums.second = fma(ahead, moved - (first + first), sums.second);
}

// Whether one of a vector of places lies less than `reach` from 0.
HEADWISE_INLINE bool any_near(Vector place, float reach) {
  return any(as_floats(bits_of(place) & 0x7FFFFFFF) < splat(reach));
}

// scores -> weights before normalization, in place (with Format::together == 2 as pairs of keys, each in the
// room of the first). Keys outside `spans` get 0. `look`: which of `seen`'s sums are added to. `chances`: weights
// that dropout takes are 0 in the result, but not in the sums.
template <class Format, Look look, bool Drop>
inline void weigh(float* scores, float scale, const Spans* spans, int keys, int vectors, Softmax& softmax, Seen* seen,
                  const Chances* chances) {
  constexpr int step = Format::together;
  constexpr bool moments = look == Look::moments;
  const Vector factor = splat(scale);
  for (int v = 0; v < vectors; ++v) {
    float* column = scores + v * lanes;
    const Vector minus = -softmax.reference(v);
    StripSums all;
    Vector lag{}, centre{};
    if (look != Look::nothing) lag = load(seen->lag + v * lanes);
    if (moments) centre = load(seen->centre + v * lanes);
    for (int start = 0; start < keys; start += strip_keys) {
      const int stop = least(start + strip_keys, keys), s = start / strip_keys;
      if (spans && (v < spans->first[s] || v >= spans->last[s])) {
        for (int k = start; k < stop; k += step) store(column + k / step * item_rows, Vector{});
        continue;
      }
      const Vector middle = splat(static_cast<float>(start) + half_strip);
      StripSums sums;
      if (look != Look::nothing && any_near(lag - middle, half_strip + 1)) {
        sums = weigh_strip<Format, look, Drop, Each::distance>(column, factor, minus, start, stop, keys, v, lag, centre,
                                                               chances);
      } else if (moments && any_near(centre - middle, strip_keys)) {
        sums = weigh_strip<Format, look, Drop, Each::moment>(column, factor, minus, start, stop, keys, v, lag, centre,
                                                             chances);
        sums.distance = distances(sums, lag - centre, lag - middle);
      } else {
        sums = weigh_strip<Format, look, Drop, Each::none>(column, factor, minus, start, stop, keys, v, lag, centre,
                                                           chances);
        if (look != Look::nothing) sums.distance = distances(sums, lag - middle, lag - middle);
        if (moments) move_moments(sums, centre - middle);
      }
      all.weight += sums.weight;
      if (look != Look::nothing) all.entropy += sums.entropy, all.distance += sums.distance;
      if (moments) all.first += sums.first, all.second += sums.second;
    }
    store(softmax.sum + v * lanes, load(softmax.sum + v * lanes) + all.weight);
    if (look != Look::nothing) {
      store(seen->entropy + v * lanes, load(seen->entropy + v * lanes) + all.entropy);
      store(seen->distance + v * lanes, load(seen->distance + v * lanes) + all.distance);
    }
    if (moments) {
      store(seen->first + v * lanes, load(seen->first + v * lanes) + all.first);
      store(seen->second + v * lanes, load(seen->second + v * lanes) + all.second);
    }
  }
}

}  // namespace headwise::HEADWISE_ISA_NAME
