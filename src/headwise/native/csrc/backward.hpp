// The backward pass, which computes the weights again from the log-sum-exp.
//
// A piece owns some keys of one key/value head, and goes over all query rows that may attend to any of them:
//
//     S^T = K Q^T     P = 2^(S - lse)     dP^T = V dO^T     dS = P (dP - delta)
//     dV += P^T dO    dK += dS^T Q        dQ += dS K
//
// so dK and dV are the piece's alone. To dQ (and the gradient of a bias that several heads share) pieces add in
// turn, so that sums have one order whatever the threads do.
#pragma once

#include "bias.hpp"
#include "few.hpp"
#include "finite.hpp"
#include "formats.hpp"
#include "gradients.hpp"
#include "shared.hpp"

namespace headwise::HEADWISE_ISA_NAME {

template <class Format>
class Backward {
 public:
  explicit Backward(const BackwardArguments& arguments) : a_(arguments), cut_(arguments) {
    groups_ = a_.kv_heads ? a_.heads / a_.kv_heads : 1;
    blocks_ = (a_.q_len + item_rows - 1) / item_rows;
    chunks_ = most<i64>(1, (a_.k_len + chunk_keys - 1) / chunk_keys);
    wanted_ = a_.grad_q.data || a_.grad_k.data || a_.grad_v.data;  // some may be empty
    key_bias_ = a_.d_bias && a_.d_bias_row == 0;
    plain_ = a_.softcap <= 0 && !a_.bias.data && a_.scale > 0;
  }

  Status run() {
    if (a_.batch * a_.heads == 0) return Status::ok;
    Status status = Status::ok;
    if (!shared_.reserve(a_, blocks_, chunks_)) return Status::no_memory;
    if (wanted_ || a_.d_bias) {
      const double useful = a_.mask.band_high == unbounded_high ? 1 : 0.5;
      const double operations = useful * static_cast<double>(a_.batch * a_.heads) * static_cast<double>(a_.q_len) *
                                static_cast<double>(a_.k_len) * static_cast<double>(6 * a_.d_k + 4 * a_.d_v);
      status = pool::run(a_.batch * a_.kv_heads * chunks_, operations, [](void* self, i64 piece) {
        return static_cast<Backward*>(self)->piece(piece);
      }, this, a_.stop);
    }
    if (a_.d_sinks && status == Status::ok)
      status = pool::run(a_.heads, static_cast<double>(a_.batch * a_.heads * a_.q_len * a_.d_v), [](void* self, i64 head) {
        static_cast<Backward*>(self)->sink(head);
        return true;
      }, this, a_.stop);
    shared_.release();
    if (doubtful_ && a_.not_finite) *a_.not_finite = 1;
    return status;
  }

 private:
  static constexpr i64 chunk_keys = 256;  // of one piece: their sums stay in the second cache

  const BackwardArguments& a_;
  Cut cut_;  // of the forward pass
  i64 groups_, blocks_, chunks_;
  bool plain_, wanted_;
  bool key_bias_;  // whether the gradient of a bias is wanted that all rows share
  std::int32_t doubtful_ = 0;  // set to 1 by any piece that can't be sure of its numbers
  Shared<Format> shared_;

  struct Room {
    float *queries, *d_outs;             // [column][row], packed
    float *query_rows, *d_out_rows;      // as the vector side of a product, where they can't be read in place
    float *keys, *values, *key_vectors;  // the same of the piece's keys
    float *scores, *d_weights, *slope, *bias, *d_bias, *d_bias_sum, *paired;
    float *key_bias, *key_bias_lost;  // of a head's rows so far
    std::uint16_t *weights, *natural;
    float *d_k, *d_v, *d_q;
    float *far_d_k, *far_d_v;  // sums of earlier blocks, as Softmax::far
    TileMask* mask;
    RowGrads* rows;
    Chances* chances;
    const char* query[item_rows];  // where the rows of q are
  };

  // The piece's keys and the rows of the present block, as products want them.
  struct Sides {
    Largest<Format> largest;
    i64 b, kv_head, start, keys;
    const char *k, *v, *k_vectors, *q_vectors, *d_out_vectors;
    i64 k_step, v_step, k_vectors_step, q_vectors_step, d_out_vectors_step;
  };

  bool room_for(Room& r) const {
    constexpr int together = Format::together;
    const i64 wide_k = padded(a_.d_k), wide_v = padded(a_.d_v);
    const bool pairs = together == 2;
    Buffer buffer;
    for (int twice = 0; twice < 2; ++twice) {
      if (twice && !buffer.take()) return false;
      buffer.part(r.queries, (a_.d_k + 1) / together * item_rows);
      buffer.part(r.d_outs, (a_.d_v + 1) / together * item_rows);
      buffer.part(r.query_rows, wide_k * item_rows);
      buffer.part(r.d_out_rows, wide_v * item_rows);
      buffer.part(r.keys, Format::in_place ? 0 : a_.d_k * chunk_keys);
      buffer.part(r.values, Format::in_place ? 0 : a_.d_v * chunk_keys);
      buffer.part(r.key_vectors, wide_k * chunk_keys);
      buffer.part(r.scores, most<i64>(tile_keys * item_rows, wide_k * tile_keys / 2));
      buffer.part(r.d_weights, tile_keys * item_rows);
      buffer.part(r.slope, a_.softcap > 0 ? tile_keys * item_rows : 0);
      buffer.part(r.bias, a_.bias.data ? tile_keys * item_rows : 0);
      buffer.part(r.d_bias, a_.d_bias ? tile_keys * item_rows : 0);
      buffer.part(r.d_bias_sum, a_.d_bias ? chunk_keys * item_rows : 0);
      buffer.part(r.key_bias, key_bias_ ? chunk_keys : 0);
      buffer.part(r.key_bias_lost, key_bias_ ? chunk_keys : 0);
      buffer.part(r.weights, pairs ? tile_keys * item_rows : 0);
      buffer.part(r.natural, pairs ? tile_keys * item_rows : 0);
      buffer.part(r.paired, pairs ? tile_keys / 2 * item_rows : 0);
      buffer.part(r.d_k, wide_k * chunk_keys);
      buffer.part(r.d_v, wide_v * chunk_keys);
      buffer.part(r.far_d_k, groups_ * blocks_ > near_tiles ? wide_k * chunk_keys : 0);
      buffer.part(r.far_d_v, groups_ * blocks_ > near_tiles ? wide_v * chunk_keys : 0);
      buffer.part(r.d_q, wide_k * item_rows);
      buffer.part(r.mask, 1);
      buffer.part(r.rows, 1);
      buffer.part(r.chances, a_.dropout.rate > 0 ? 1 : 0);
    }
    return true;
  }

  bool piece(i64 number) {
    const i64 chunk = number / (a_.batch * a_.kv_heads), place = number % (a_.batch * a_.kv_heads);
    Sides s;
    s.b = place / a_.kv_heads, s.kv_head = place % a_.kv_heads;
    s.start = chunk * chunk_keys, s.keys = least(chunk_keys, a_.k_len - s.start);
    Room r;
    if (!room_for(r)) return false;
    const i64 wide_k = padded(a_.d_k), wide_v = padded(a_.d_v);
    const char* k = row_of(a_.k, s.b, s.kv_head, s.start, Format::size);
    const char* v = row_of(a_.v, s.b, s.kv_head, s.start, Format::size);
    const i64 k_step = a_.k.row * Format::size, v_step = a_.v.row * Format::size;
    s.k = static_cast<const char*>(readable_rows<Format>(k, k_step, s.keys, a_.d_k, r.keys, s.k_step));
    s.v = static_cast<const char*>(readable_rows<Format>(v, v_step, s.keys, a_.d_v, r.values, s.v_step));
    s.k_vectors = static_cast<const char*>(
        readable_vectors<Format>(k, k_step, s.keys, a_.d_k, r.key_vectors, s.k_vectors_step));
    std::memset(r.d_k, 0, sizeof(float) * static_cast<std::size_t>(wide_k * s.keys));
    std::memset(r.d_v, 0, sizeof(float) * static_cast<std::size_t>(wide_v * s.keys));
    s.largest.keys(k, k_step, v, v_step, s.keys, a_);
    int near = 0;  // blocks whose sums are in d_k and d_v
    bool far = false;
    for (i64 h = s.kv_head * groups_; h < (s.kv_head + 1) * groups_; ++h) {
      for (i64 j = 0; key_bias_ && j < chunk_keys; ++j) r.key_bias[j] = r.key_bias_lost[j] = 0;
      for (i64 block = 0; block < blocks_; ++block) {
        if (pool::cancelled()) return true;
        const i64 first = block * item_rows;
        // (Where rows attend to nothing, the first chunk writes their gradient.)
        if (chunk > 0 && (!a_.d_bias || key_bias_) && !may_reach(a_, s.b, first, s.start, s.keys)) continue;
        const Rows rows(a_, s.b, h, first, static_cast<int>(least<i64>(item_rows, a_.q_len - first)));
        if (near == near_tiles) {
          put_aside(r.d_k, r.far_d_k, far, wide_k * s.keys);
          put_aside(r.d_v, r.far_d_v, far, wide_v * s.keys);
          near = 0, far = true;
        }
        near += rows_against_keys(rows, s, r, chunk, h * blocks_ + block);
      }
      if (key_bias_) shared_.add_key_bias(s.b, h, chunk, s.start, s.keys, r.key_bias, r.key_bias_lost);
    }
    if ((near || far) && !s.largest.sure(a_)) doubt();
    if (!wanted_) return true;
    if (far) {
      put_aside(r.far_d_k, r.d_k, true, wide_k * s.keys);
      put_aside(r.far_d_v, r.d_v, true, wide_v * s.keys);
    }
    for (i64 j = 0; j < s.keys; ++j) {
      write_row<Format>(row_of(a_.grad_k, s.b, s.kv_head, s.start + j, Format::size), r.d_k + j * wide_k, a_.d_k,
                static_cast<float>(a_.scale));
      write_row<Format>(row_of(a_.grad_v, s.b, s.kv_head, s.start + j, Format::size), r.d_v + j * wide_v, a_.d_v, 1);
    }
    return true;
  }

  // One block of rows, whose gradients of q belong to all pieces that it attends to. False: it has nothing to do
  // with these keys.
  bool rows_against_keys(const Rows& rows, Sides& s, Room& r, i64 chunk, i64 block) {
    const i64 first_chunk = rows.begin / chunk_keys;
    const i64 last_chunk = rows.end > rows.begin ? (rows.end - 1) / chunk_keys : 0;
    if (chunk < first_chunk || chunk > last_chunk) {
      if (a_.d_bias && !key_bias_) shared_.add_bias(rows, chunk, s.start, s.keys, nullptr);
      return false;
    }
    const i64 from = most(rows.begin, s.start), until = least(rows.end, s.start + s.keys);
    if (a_.d_bias)
      std::memset(r.d_bias_sum, 0, sizeof(float) * static_cast<std::size_t>(chunk_keys * item_rows));
    bool none = true;
    for (i64 at = from; at < until; at += tile_keys) {
      const int keys = static_cast<int>(least<i64>(tile_keys, until - at));
      const Tile kind = rows.look(at, keys, *r.mask);
      if (kind == Tile::empty) continue;
      if (none) read_rows(rows, s, r);  // not before: most blocks of documents have nothing to do with these keys
      tile_of(rows, s, r, at, keys, kind == Tile::partial, none);
      none = false;
    }
    if (a_.d_bias && !key_bias_) shared_.add_bias(rows, chunk, s.start, s.keys, none ? nullptr : r.d_bias_sum);
    for (i64 j = 0; key_bias_ && !none && j < s.keys; ++j)
      add_kept(r.key_bias[j], r.key_bias_lost[j], sum_of_some(r.d_bias_sum + j * item_rows, rows.count));
    if (wanted_) shared_.add_d_q(rows, block, chunk - first_chunk, chunk == last_chunk, none ? nullptr : r.d_q);
    return !none;
  }

  void read_rows(const Rows& rows, Sides& s, Room& r) {
    const char* row[item_rows];
    const i64 b = s.b, h = rows.head[0];
    for (int i = 0; i < rows.count; ++i) r.query[i] = row_of(a_.q, b, h, rows.query[i], Format::size);
    pack<typename Format::Pack>(r.query, rows.count, a_.d_k / Format::together, r.queries);
    for (int i = 0; i < rows.count; ++i) row[i] = row_of(a_.d_out, b, h, rows.query[i], Format::size);
    pack<typename Format::Pack>(row, rows.count, a_.d_v / Format::together, r.d_outs);
    const i64 q = rows.query[0];
    s.q_vectors = static_cast<const char*>(readable_vectors<Format>(row_of(a_.q, b, h, q, Format::size),
                                                                    a_.q.row * Format::size, rows.count, a_.d_k,
                                                                    r.query_rows, s.q_vectors_step));
    s.d_out_vectors = static_cast<const char*>(readable_vectors<Format>(row_of(a_.d_out, b, h, q, Format::size),
                                                                        a_.d_out.row * Format::size, rows.count,
                                                                        a_.d_v, r.d_out_rows, s.d_out_vectors_step));
    s.largest.rows(r.query[0], a_.q.row * Format::size, row[0], a_.d_out.row * Format::size, rows.count, a_);
    r.rows->template start<Format>(a_, b, h, q, rows.count);
    s.largest.results(r.rows->lse, r.rows->delta, rows.count);
    if (a_.dropout.rate > 0) r.chances->start(a_, rows);
  }

  void tile_of(const Rows& rows, const Sides& s, Room& r, i64 at, int keys, bool partial, bool first) {
    using Entry = typename Format::Entry;
    constexpr int together = Format::together;
    const int vectors = (rows.count + lanes - 1) / lanes;
    const i64 wide_k = padded(a_.d_k), wide_v = padded(a_.d_v), local = at - s.start;
    Spans spans;
    if (partial) spans = spans_of(*r.mask, keys);
    const Spans* part = partial ? &spans : nullptr;
    // Scores are added up in the same order as in the forward pass: where they are large, a different rounding
    // shows in the weights.
    const bool few = in_few<Format>(a_, cut_.together(a_, rows.head[0], rows.query[0]));
    if (few) {
      for (int j = 0; j < keys; ++j) std::memset(r.scores + j * item_rows, 0, sizeof(float) * item_rows);
      score_few<Format>(r.query, rows.count, row_of(a_.k, s.b, s.kv_head, at, Format::size), a_.k.row * Format::size,
                        keys, a_.d_k, nullptr, 0, 0, r.scores);
    }
    for (int strip = 0; strip * strip_keys < keys; ++strip) {
      const int from = partial ? strip * strip_keys : 0, count = partial ? least(strip_keys, keys - from) : keys;
      const int v = partial ? spans.first[strip] : 0, stop = partial ? spans.last[strip] : vectors;
      if (v < stop) {
        const i64 place = from * item_rows + v * lanes;
        if (!few)
          product<Entry, false, Into::set>(count, stop - v, s.k + (local + from) * s.k_step, s.k_step,
                                           r.queries + v * lanes, item_rows * 4, a_.d_k / together, r.scores + place,
                                           item_rows);
        product<Entry, false, Into::set>(count, stop - v, s.v + (local + from) * s.v_step, s.v_step,
                                         r.d_outs + v * lanes, item_rows * 4, a_.d_v / together, r.d_weights + place,
                                         item_rows);
      }
      if (!partial) break;
    }
    const float* bias = nullptr;
    if (a_.bias.data) {
      read_bias(rows, at, keys, r.bias);
      bias = r.bias;
    }
    if (!plain_) change_scores(a_, r.scores, bias, keys, vectors, a_.softcap > 0 ? r.slope : nullptr);
    if (partial) hide(r.scores, *r.mask, spans, keys);
    const TileGrads t = {r.scores,  r.d_weights, a_.softcap > 0 ? r.slope : nullptr, a_.d_bias ? r.d_bias : nullptr,
                         r.weights, r.natural,   r.paired};
    const float scale = plain_ ? static_cast<float>(a_.scale) * log2_e : 1.0f;
    if (a_.dropout.rate > 0) {
      r.chances->block(a_, at, keys);
      differentiate<Format, true>(t, scale, part, keys, vectors, *r.rows, r.chances,
                                  static_cast<float>(1 / (1 - a_.dropout.rate)));
    } else {
      differentiate<Format, false>(t, scale, part, keys, vectors, *r.rows, nullptr, 1);
    }
    if (a_.d_bias) {
      float* sum = r.d_bias_sum + local * item_rows;
      for (int n = 0; n < keys * item_rows; n += lanes)
        if (n % item_rows < vectors * lanes) store(sum + n, load(sum + n) + load(r.d_bias + n));
    }
    if (!wanted_) return;
    add_to_keys(rows, r, keys, partial, together == 2 ? static_cast<const void*>(r.weights) : r.scores,
                s.d_out_vectors, s.d_out_vectors_step, r.d_v + local * wide_v, wide_v);
    add_to_keys(rows, r, keys, partial, together == 2 ? static_cast<const void*>(r.natural) : r.d_weights,
                s.q_vectors, s.q_vectors_step, r.d_k + local * wide_k, wide_k);
    add_to_rows(rows, s, r, local, keys, partial, first);
  }

  // dV += P^T dO, or dK += dS^T Q: few keys at a time, over the rows that attend to any of them.
  void add_to_keys(const Rows& rows, Room& r, int keys, bool partial, const void* left, const char* right, i64 step,
                   float* sum, i64 wide) {
    using Entry = typename Format::Entry;
    constexpr int together = Format::together, a_step = item_rows * 4 / together;
    const char* a = static_cast<const char*>(left);
    if (!partial) {
      product<Entry, false, Into::add>(keys, wide / lanes, a, a_step, right, step,
                                       (rows.count + together - 1) / together, sum, wide);
      return;
    }
    for (int from = 0; from < keys; from += tile_rows) {
      const int count = least(tile_rows, keys - from);
      std::uint64_t some = 0;
      for (int k = from; k < from + count; ++k) some |= r.mask->by_key[k];
      if (!some) continue;
      const int low = __builtin_ctzll(some) / together, high = (64 - __builtin_clzll(some) + together - 1) / together;
      product<Entry, false, Into::add>(count, wide / lanes, a + from * a_step + low * 4, a_step, right + low * step,
                                       step, high - low, sum + from * wide, wide);
    }
  }

  // dQ += dS K: few rows at a time, over the keys that any of them attends to.
  void add_to_rows(const Rows& rows, const Sides& s, Room& r, i64 local, int keys, bool partial, bool first) {
    using Entry = typename Format::Entry;
    constexpr int together = Format::together;
    const i64 wide = padded(a_.d_k);
    const float* left = together == 2 ? r.paired : r.d_weights;
    // Pairs of keys are counted from the piece's start, and a tile may start at an odd one: then K's pairs are made
    // for this tile.
    const char* right = s.k_vectors + local / together * s.k_vectors_step;
    i64 step = s.k_vectors_step;
    if (together == 2 && local % 2 != 0)
      right = static_cast<const char*>(
          readable_vectors<Format>(row_of(a_.k, s.b, s.kv_head, s.start + local, Format::size),
                                   a_.k.row * Format::size, keys, a_.d_k, r.scores, step));
    for (int from = 0; from < rows.count;) {
      const int count = partial ? least(tile_rows, rows.count - from) : rows.count;
      int low = 0, high = keys;
      if (partial) {
        std::uint64_t some = 0;
        for (int i = from; i < from + count; ++i) some |= r.mask->by_row[i];
        low = some ? __builtin_ctzll(some) : 0;
        high = some ? 64 - __builtin_clzll(some) : 0;
      }
      low /= together, high = (high + together - 1) / together;
      const float* a = left + low * item_rows + from;
      if (first)
        product<Entry, true, Into::set>(count, wide / lanes, a, item_rows * 4, right + low * step, step, high - low,
                                        r.d_q + from * wide, wide);
      else
        product<Entry, true, Into::add>(count, wide / lanes, a, item_rows * 4, right + low * step, step, high - low,
                                        r.d_q + from * wide, wide);
      from += count;
    }
  }

  // d sink = -sum exp(sink - lse) delta: the sink is a key whose value is 0.
  void sink(i64 h) {
    double sum = 0;
    for (i64 b = 0; b < a_.batch; ++b)
      for (i64 i = 0; i < a_.q_len; ++i) {
        const float lse = a_.lse[(b * a_.heads + h) * a_.q_len + i];
        if (lse == -__builtin_inff()) continue;
        const float share = exp2(splat((a_.sinks[h] - lse) * log2_e))[0];
        sum -= static_cast<double>(share) * delta_of<Format>(a_, b, h, i);
      }
    a_.d_sinks[h] = static_cast<float>(sum);
    if (!(a_.d_sinks[h] - a_.d_sinks[h] == 0)) doubt();  // of rows that attend to no key, too
  }

  void doubt() { __atomic_store_n(&doubtful_, 1, __ATOMIC_RELAXED); }
};

}  // namespace headwise::HEADWISE_ISA_NAME
