// Very few query rows against many keys: decoding, where reading keys and values is all the work.
//
// Here keys lie in the lanes, so that one row fills vectors too: scores and weights are [row][key]. Keys and values
// are read once for all rows that share them, in place, and in turn by tiles.
#pragma once

#include "few.hpp"
#include "finish.hpp"

namespace headwise::HEADWISE_ISA_NAME {

// A vector of values as floats.
template <class Format>
HEADWISE_INLINE Vector value_vector(const char* at) {
  return Format::size == 4 ? load(reinterpret_cast<const float*>(at)) : load_bf16(at);
}

// Rows of memory that will be read next. `start` is nullptr where they are near enough without being asked for.
struct Next {
  const char* start;
  i64 step, bytes;

  HEADWISE_INLINE void ask(int row) const {
    if (!start) return;
    for (i64 c = 0; c < bytes; c += 64) __builtin_prefetch(start + row * step + c, 0, 2);
  }
};

// scores[row][key], tile_keys apart, of R rows. `queries` as `pack_rows` lays them.
template <class Format, int R>
inline void score_rows(const float* queries, const char* k, i64 step, int keys, i64 depth, const Next& next,
                       float* scores) {
  constexpr int at_once = lanes / R;  // keys: then sums fill one vector
  for (int first = 0; first < keys; first += at_once) {
    const char* key[at_once];
#pragma GCC unroll 16
    for (int j = 0; j < at_once; ++j) key[j] = k + least(first + j, keys - 1) * step;
    for (int j = first; j < first + at_once; ++j) next.ask(j);
    Vector sum[lanes];
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i) sum[i] = Vector{};
    for (i64 c = 0; c < depth; ++c) {
      Vector q[R];
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) q[i] = load(queries + (c * R + i) * lanes);
#pragma GCC unroll 16
      for (int j = 0; j < at_once; ++j) {
        const Vector x = few_vector<Format>(key[j] + c * few_bytes<Format>);
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i) sum[i * at_once + j] = Format::Entry::add(x, q[i], sum[i * at_once + j]);
      }
    }
    alignas(64) float all[lanes];
    store(all, sums_of(sum));
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) std::memcpy(scores + i * tile_keys + first, all + i * at_once, 4 * at_once);
  }
}

// out[row] = alpha[row] out[row] + sum over the keys of weight x value, N vectors of columns (`first`: out is not
// yet anything).
template <class Format, int R, int N>
HEADWISE_INLINE void add_values(const float* weights, const char* v, i64 step, int keys, const Next& next,
                                const float* alpha, bool first, float* out, i64 wide) {
  Vector sum[R][N];
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) sum[i][n] = Vector{};
  }
#pragma GCC unroll 4
  for (int j = 0; j < keys; ++j) {
    next.ask(j);
    Vector right[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) right[n] = value_vector<Format>(v + j * step + n * lanes * Format::size);
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      const Vector left = splat(weights[i * tile_keys + j]);
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) sum[i][n] = fma(left, right[n], sum[i][n]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i) {
    const Vector factor = splat(alpha[i]);
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      float* at = out + i * wide + n * lanes;
      store(at, first ? sum[i][n] : fma(factor, load(at), sum[i][n]));
    }
  }
}

template <class Format>
class Decode {
 public:
  // Whether this is for a call: few rows, of whole vectors, without anything that changes scores or weights.
  static bool takes(const ForwardArguments& a) {
    return a.heads > 0 && a.softcap <= 0 && !a.bias.data && a.scale > 0 && a.dropout.rate <= 0 && a.q_len > 0 &&
           Cut(a).rows <= most_rows && in_few<Format>(a, 1) && a.d_v > 0 && a.d_v % lanes == 0;
  }

  explicit Decode(const ForwardArguments& arguments) : a_(arguments), cut_(arguments) {
    // By sizes alone: the sums' order, and so their rounding, must not depend on the threads.
    const i64 pieces = cut_.pieces(a_);
    if (pieces > 0 && pieces < enough_pieces)
      splits_ = most<i64>(1, least(a_.k_len / split_keys, (enough_pieces + pieces - 1) / pieces));
    const int rows = static_cast<int>(cut_.rows);
    rows_ = rows <= 2 ? rows : rows <= 4 ? 4 : most_rows;
    part_ = (rows_ * (a_.d_v + 2) + 15) / 16 * 16;
    ahead_ = a_.batch * a_.kv_heads * a_.k_len * (a_.d_k + a_.d_v) * Format::size > near_bytes;
  }

  Status run() {
    const i64 pieces = cut_.pieces(a_), counters = (pieces + 15) / 16 * 16;
    if (splits_ > 1) {
      parts_ = static_cast<float*>(pool::reserve(4 * static_cast<std::size_t>(counters + pieces * splits_ * part_)));
      if (!parts_) return Status::no_memory;
    }
    const double operations = 2.0 * static_cast<double>(a_.batch * a_.heads) * static_cast<double>(a_.q_len) *
                              static_cast<double>(a_.k_len) * static_cast<double>(a_.d_k + a_.d_v);
    const Status status = pool::run(pieces * splits_, operations, [](void* self, i64 piece) {
      return static_cast<Decode*>(self)->piece(piece);
    }, this, a_.stop);
    if (parts_) pool::release(parts_);
    return status;
  }

 private:
  static constexpr int most_rows = least(few_rows, lanes);
  static constexpr i64 enough_pieces = 32, split_keys = 512;
  static constexpr i64 near_bytes = 3 << 20;  // of keys and values that a core's own cache may hold
  const ForwardArguments& a_;
  Cut cut_;
  i64 splits_ = 1, part_ = 0;
  int rows_ = 1;        // of a piece, with those that only fill up
  bool ahead_ = false;  // whether memory is asked for before it is read
  float* parts_ = nullptr;

  struct Room {
    float *queries, *weights, *outputs, *far;
    Vector *sum, *far_sum;  // of weights, by lanes: [row]
    TileMask* mask;
    Softmax* softmax;  // its `top` and, at the end, `sum`
  };

  bool room_for(Room& r) const {
    Buffer buffer;
    for (int twice = 0; twice < 2; ++twice) {
      if (twice && !buffer.take()) return false;
      buffer.part(r.queries, rows_ * a_.d_k * Format::size / few_bytes<Format> * lanes);
      buffer.part(r.weights, rows_ * tile_keys);
      buffer.part(r.outputs, rows_ * a_.d_v);
      buffer.part(r.far, a_.k_len > near_tiles * tile_keys ? rows_ * a_.d_v : 0);
      buffer.part(r.sum, rows_);
      buffer.part(r.far_sum, rows_);
      buffer.part(r.mask, 1);
      buffer.part(r.softmax, 1);
    }
    return true;
  }

  bool piece(i64 whole) {
    const i64 number = whole / splits_, split = whole % splits_;
    const Rows rows(a_, number / cut_.heads, number % cut_.heads * cut_.group, 0, static_cast<int>(cut_.rows));
    Room r;
    if (!room_for(r)) return false;
    // Tiles and splits are those of all keys, and not of those in sight: the same keys give the same bits in
    // whatever form a mask says so.
    const i64 tiles = (a_.k_len + tile_keys - 1) / tile_keys;
    const i64 from = most(tiles * split / splits_ * tile_keys, rows.begin / tile_keys * tile_keys);
    const i64 until = least(rows.end, tiles * (split + 1) / splits_ * tile_keys);
    if (rows_ == 1)
      attend<1>(rows, r, from, until);
    else if (rows_ == 2)
      attend<2>(rows, r, from, until);
    else if (rows_ == 4)
      attend<4>(rows, r, from, until);
    else
      attend<most_rows>(rows, r, from, until);
    if (pool::cancelled()) return true;
    if (splits_ > 1) {
      keep(whole, r);
      auto* counter = reinterpret_cast<std::int32_t*>(parts_) + number;
      if (__atomic_add_fetch(counter, 1, __ATOMIC_ACQ_REL) != splits_) return true;
      join(number, r);
    }
    return Finish<Format>{a_, rows, *r.softmax}.write(r.outputs, a_.d_v);
  }

  // Each vector of columns of each row, rows side by side; rows that only fill up are the last one again.
  template <int R>
  void pack_rows(const Rows& rows, float* queries) const {
    const i64 depth = a_.d_k * Format::size / few_bytes<Format>;
    for (int i = 0; i < R; ++i) {
      const int n = least(i, rows.count - 1);
      const char* row = row_of(a_.q, rows.batch, rows.head[n], rows.query[n], Format::size);
      for (i64 c = 0; c < depth; ++c)
        store(queries + (c * R + i) * lanes, few_vector<Format>(row + c * few_bytes<Format>));
    }
  }

  // The rows' sums over the keys from .. until - 1.
  template <int R>
  void attend(const Rows& rows, Room& r, i64 from, i64 until) {
    const i64 kv_head = rows.head[0] / (a_.heads / a_.kv_heads), wide = a_.d_v;
    const i64 depth = a_.d_k * Format::size / few_bytes<Format>;
    const i64 k_step = a_.k.row * Format::size, k_bytes = a_.d_k * Format::size;
    const i64 v_step = a_.v.row * Format::size, v_bytes = a_.d_v * Format::size;
    const float scale = static_cast<float>(a_.scale) * log2_e;
    pack_rows<R>(rows, r.queries);
    r.softmax->start();
    for (int i = 0; i < R; ++i) r.sum[i] = r.far_sum[i] = Vector{};

    int near = 0;  // tiles whose sums are in `outputs`
    bool far = false, first = true;
    for (i64 start = from; start < until; start += tile_keys) {
      if (near == near_tiles) {
        put_aside(r.outputs, r.far, far, R * wide);
        for (int i = 0; i < R; ++i) r.far_sum[i] += r.sum[i], r.sum[i] = Vector{};
        near = 0, far = first = true;
      }
      const int keys = static_cast<int>(least<i64>(tile_keys, until - start));
      const Tile kind = rows.look(start, keys, *r.mask);
      if (kind == Tile::empty) continue;
      if (pool::cancelled()) return;
      const char* k = row_of(a_.k, rows.batch, kv_head, start, Format::size);
      const char* v = row_of(a_.v, rows.batch, kv_head, start, Format::size);
      score_rows<Format, R>(r.queries, k, k_step, keys, depth, {ahead_ ? v : nullptr, v_step, v_bytes}, r.weights);
      alignas(64) float alpha[R];
      bool moved = false;
      for (int i = 0; i < R; ++i) {
        const std::uint64_t every = ~std::uint64_t{0} >> (64 - keys);
        const std::uint64_t bits = kind == Tile::partial ? r.mask->by_row[least(i, rows.count - 1)] : every;
        alpha[i] = weigh_row(r, i, bits, keys, scale);
        moved = moved || alpha[i] != 1;
      }
      const bool more = ahead_ && start + tile_keys < until;
      add_all_values<R>(r, v, keys, {more ? k + tile_keys * k_step : nullptr, k_step, k_bytes}, alpha, first);
      if (moved && far)
        for (int i = 0; i < R; ++i)
          for (i64 c = 0; c < wide; c += lanes)
            store(r.far + i * wide + c, load(r.far + i * wide + c) * splat(alpha[i]));
      first = false, ++near;
    }
    if (first) std::memset(r.outputs, 0, sizeof(float) * static_cast<std::size_t>(R * wide));
    if (far) bring_back(r.far, r.outputs, R * wide);
    for (int i = 0; i < R; ++i) set_sum(r, i, sum_of(r.far_sum[i] + r.sum[i]));
  }

  // A row's scores become weights, 0 where `bits` has no bit; what sums so far are multiplied by.
  HEADWISE_INLINE float weigh_row(Room& r, int i, std::uint64_t bits, int keys, float scale) const {
    constexpr std::uint32_t all = static_cast<std::uint32_t>((std::uint64_t{1} << lanes) - 1);
    const Vector none = splat(-__builtin_inff());
    float* weights = r.weights + i * tile_keys;
    float& top = r.softmax->top[i];
    Vector high = none;
    for (int j = 0; j < keys; j += lanes) {
      const std::uint32_t here = static_cast<std::uint32_t>(bits >> j) & all;
      if (here != all) store(weights + j, select_bits(here, load(weights + j), none));
      high = larger(load(weights + j), high);
    }
    const Vector factor = splat(scale);
    high = select(high == none, none, high * factor);
    float alpha = 1;
    if (any(high > splat(top + Softmax::slack))) {
      alignas(64) float by_lane[lanes];
      store(by_lane, high);
      float now = by_lane[0];
      for (int l = 1; l < lanes; ++l) now = by_lane[l] > now ? by_lane[l] : now;
      alpha = exp2(splat(top - now))[0];
      top = now;
      r.sum[i] *= splat(alpha);
      r.far_sum[i] *= splat(alpha);
    }
    const Vector minus = splat(top > -largest_float ? -top : largest_float);
    Vector sum{};
    for (int j = 0; j < keys; j += lanes) {
      const Vector p = exp2(fma(load(weights + j), factor, minus));
      store(weights + j, p);
      sum += p;
    }
    r.sum[i] += sum;
    return alpha;
  }

  template <int R>
  HEADWISE_INLINE void add_all_values(Room& r, const char* v, int keys, Next next, const float* alpha,
                                      bool first) const {
    constexpr int registers = lanes == 16 ? 16 : 8;
    constexpr int N = least(4, registers / R);
    const i64 step = a_.v.row * Format::size, wide = a_.d_v;
    i64 c = 0;
    for (; c + N * lanes <= wide; c += N * lanes) {
      add_values<Format, R, N>(r.weights, v + c * Format::size, step, keys, next, alpha, first, r.outputs + c, wide);
      next.start = nullptr;
    }
    for (; c < wide; c += lanes) {
      add_values<Format, R, 1>(r.weights, v + c * Format::size, step, keys, next, alpha, first, r.outputs + c, wide);
      next.start = nullptr;
    }
  }

  // Values take the weights as they are, also in bfloat16.
  static void set_sum(Room& r, int i, float sum) { r.softmax->sum[i] = r.softmax->rounded[i] = sum; }

  // Parts: a counter for each piece, then what each split found: tops, sums, outputs.
  float* part(i64 whole) const { return parts_ + (cut_.pieces(a_) + 15) / 16 * 16 + whole * part_; }

  void keep(i64 whole, const Room& r) const {
    float* to = part(whole);
    const auto bytes = 4 * static_cast<std::size_t>(rows_);
    std::memcpy(to, r.softmax->top, bytes);
    std::memcpy(to + rows_, r.softmax->sum, bytes);
    std::memcpy(to + 2 * rows_, r.outputs, bytes * static_cast<std::size_t>(a_.d_v));
  }

  // All splits of a piece in their order, whichever came first.
  void join(i64 number, Room& r) const {
    const i64 wide = a_.d_v;
    for (int i = 0; i < rows_; ++i) {
      float top = -__builtin_inff(), sum = 0;
      for (i64 s = 0; s < splits_; ++s) top = most(top, part(number * splits_ + s)[i]);
      for (i64 s = 0; s < splits_; ++s) {
        const float* found = part(number * splits_ + s);
        const float shift = found[i] == top ? 0 : found[i] - top;  // at most 0
        const Vector factor = exp2(splat(shift));
        const float* from = found + 2 * rows_ + i * wide;
        float* to = r.outputs + i * wide;
        sum += factor[0] * found[rows_ + i];
        for (i64 c = 0; c < wide; c += lanes)
          store(to + c, s ? fma(factor, load(from + c), load(to + c)) : factor * load(from + c));
      }
      r.softmax->top[i] = top;
      set_sum(r, i, sum);
    }
  }
};

}  // namespace headwise::HEADWISE_ISA_NAME
