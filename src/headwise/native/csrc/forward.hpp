// The forward pass: 64 query rows against all their keys, block by block.
#pragma once

#include "bias.hpp"
#include "few.hpp"
#include "finish.hpp"
#include "partial.hpp"

namespace headwise::HEADWISE_ISA_NAME {

template <class Format>
class Forward {
 public:
  explicit Forward(const ForwardArguments& arguments) : a_(arguments), cut_(arguments) {
    const RowStatistics& r = a_.rows;
    look_ = r.entropy || r.distance || r.spread || r.max_weight || r.max_key || r.offset_mass || r.top_count ||
            r.mark_columns;
    sums_ = r.spread ? Look::moments : r.entropy || r.distance ? Look::sums : Look::nothing;
    // Without anything in between, scores stay as the product gives them, and the scale waits for softmax.
    plain_ = a_.softcap <= 0 && !a_.bias.data && a_.scale > 0;
    // Where there are too few pieces for many threads, the keys are cut too. By sizes alone: the sums' order,
    // and so their rounding, must not depend on the threads.
    const i64 pieces = cut_.pieces(a_);
    if (pieces > 0 && pieces < enough_pieces)
      splits_ = most<i64>(1, least(a_.k_len / split_keys, (enough_pieces + pieces - 1) / pieces));
  }

  // Whether more is asked for than output and log-sum-exp.
  bool looks() const { return look_ || a_.rows.reference; }

  Status run() {
    const double useful = a_.mask.band_high == unbounded_high ? 1 : 0.5;
    const double operations = 2.0 * static_cast<double>(a_.batch * a_.heads) * static_cast<double>(a_.q_len) *
                              static_cast<double>(a_.k_len) * static_cast<double>(a_.d_k + a_.d_v) * useful;
    if (splits_ > 1 && !parts_.reserve(a_, cut_.pieces(a_), splits_)) return Status::no_memory;
    const Status status = pool::run(cut_.pieces(a_) * splits_, operations, [](void* self, i64 piece) {
      return static_cast<Forward*>(self)->piece(piece);
    }, this, a_.stop);
    parts_.release();
    return status;
  }

 private:
  const ForwardArguments& a_;
  Cut cut_;
  bool look_, plain_;
  Look sums_;
  i64 splits_ = 1;
  Parts parts_;
  static constexpr i64 enough_pieces = 32, split_keys = 512;

  struct Room {
    float *queries, *scores, *outputs, *keys, *values, *bias;
    float* far;  // outputs of earlier tiles, as Softmax::far
    TileMask* mask;
    Softmax* softmax;
    Seen* seen;
    Chances* chances;
    Picks picks;
    Marks marks;
  };

  bool room_for(Room& r) const {
    Buffer buffer;
    for (int twice = 0; twice < 2; ++twice) {
      if (twice && !buffer.take()) return false;
      buffer.part(r.queries, (a_.d_k + 1) / Format::together * item_rows);
      buffer.part(r.scores, tile_keys * item_rows);
      buffer.part(r.outputs, padded(a_.d_v) * item_rows);
      buffer.part(r.far, a_.k_len > near_tiles * tile_keys ? padded(a_.d_v) * item_rows : 0);
      buffer.part(r.values, padded(a_.d_v) * tile_keys);
      buffer.part(r.keys, Format::in_place ? 0 : a_.d_k * tile_keys);
      buffer.part(r.bias, a_.bias.data ? tile_keys * item_rows : 0);
      buffer.part(r.mask, 1);
      buffer.part(r.softmax, 1);
      buffer.part(r.seen, look_ ? 1 : 0);
      buffer.part(r.chances, a_.dropout.rate > 0 ? 1 : 0);
      buffer.part(r.picks.offset_scores, a_.rows.offset_count * item_rows);
      buffer.part(r.picks.top_scores, Picks::listed(a_.rows) * item_rows);
      buffer.part(r.picks.top_keys, Picks::listed(a_.rows) * item_rows);
      buffer.part(r.marks.mass, a_.rows.mark_columns * item_rows);
      buffer.part(r.marks.far, a_.rows.mark_columns * item_rows);
    }
    return true;
  }

  bool piece(i64 whole) {
    const i64 number = whole / splits_, split = whole % splits_;
    const i64 place = number / cut_.per_head;
    const i64 block = cut_.per_head - 1 - number % cut_.per_head;  // the longest rows of causal ones first
    const i64 start = block * item_rows;
    const Rows rows(a_, place / cut_.heads, place % cut_.heads * cut_.group, start,
                    static_cast<int>(least<i64>(item_rows, cut_.rows - start)));
    Room r;
    if (!room_for(r)) return false;
    i64 from = rows.begin, until = rows.end;
    if (splits_ > 1) {
      const i64 tiles = (until - from + tile_keys - 1) / tile_keys;
      from = rows.begin + tiles * split / splits_ * tile_keys;
      until = least(rows.end, rows.begin + tiles * (split + 1) / splits_ * tile_keys);
    }
    attend(rows, r, from, until);
    if (pool::cancelled()) return true;
    const i64 wide = padded(a_.d_v);
    State state{r.softmax, look_ ? r.seen : nullptr, r.picks, r.marks, r.outputs};
    if (splits_ > 1) {
      parts_.keep(number, split, state, rows.count, wide);
      if (!parts_.last(number)) return true;
      parts_.join(number, state, rows.count, wide);
    }
    return Finish<Format>{a_, rows, *r.softmax, state.seen, &r.picks, &r.marks, scale()}.write(r.outputs, wide);
  }

  // By which scores are multiplied, to be powers of two.
  float scale() const { return plain_ ? static_cast<float>(a_.scale) * log2_e : 1.0f; }

  // The rows' sums over the keys from .. until - 1.
  void attend(const Rows& rows, Room& r, i64 from, i64 until) {
    const int vectors = (rows.count + lanes - 1) / lanes;
    const i64 kv_head = rows.head[0] / (a_.heads / a_.kv_heads), wide = padded(a_.d_v);
    const char* row[item_rows];
    for (int i = 0; i < rows.count; ++i)
      row[i] = row_of(a_.q, rows.batch, rows.head[i], rows.query[i], Format::size);
    // They come from far away and in no order that the CPU would foresee; so does the room for the output, which is
    // asked for now and written at the end.
    for (int i = 0; i < rows.count; ++i) {
      for (i64 c = 0; c < a_.d_k * Format::size; c += 64) __builtin_prefetch(row[i] + c);
      const char* out = row_of(a_.out, rows.batch, rows.head[i], rows.query[i], Format::size);
      for (i64 c = 0; splits_ == 1 && c < a_.d_v * Format::size; c += 64) __builtin_prefetch(out + c, 1, 2);
    }
    const bool few = in_few<Format>(a_, rows.count);
    if (few)
      std::memset(r.scores, 0, sizeof(float) * tile_keys * item_rows);  // the lanes of rows that are not there
    else
      pack<typename Format::Pack>(row, rows.count, a_.d_k / Format::together, r.queries);
    r.softmax->start();
    if (look_) {
      r.seen->start(rows);
      r.picks.start(a_.rows, rows.count);
      r.marks.start(a_.rows);
    }
    if (a_.dropout.rate > 0) r.chances->start(a_, rows);

    int near = 0;  // tiles whose sums are in `outputs`
    bool far = false, first = true;
    for (i64 start = from; start < until; start += tile_keys) {
      if (near == near_tiles) {
        put_aside(r.outputs, r.far, far, rows.count * wide);
        r.softmax->settle();
        if (look_) r.seen->settle(), r.marks.settle(a_.rows);
        near = 0, far = first = true;
      }
      const int keys = static_cast<int>(least<i64>(tile_keys, until - start));
      const Tile kind = rows.look(start, keys, *r.mask);
      if (kind == Tile::empty) continue;
      if (pool::cancelled()) return;
      Spans spans;
      if (kind == Tile::partial) spans = spans_of(*r.mask, keys);
      const Spans* part = kind == Tile::partial ? &spans : nullptr;
      score(rows, r, kv_head, start, keys, vectors, part, few ? row : nullptr);
      const float scale = this->scale();
      if (look_)
        r.seen->find_best(r.scores, scale, part, keys, vectors, r.softmax->best);
      else
        find_best(r.scores, scale, part, keys, vectors, r.softmax->best);
      const bool moved = r.softmax->template follow<Format>(vectors);
      if (look_) look(rows, r, scale, part, start, keys, vectors, moved);
      if (a_.dropout.rate > 0) r.chances->block(a_, start, keys);
      weigh_block(r, scale, part, keys, vectors);
      if (by_rounded<Format>(a_)) add_rounded<Format>(r.scores, keys, vectors, *r.softmax);
      i64 step;
      const void* values =
          readable_vectors<Format>(row_of(a_.v, rows.batch, kv_head, start, Format::size), a_.v.row * Format::size,
                                   keys, a_.d_v, r.values, step);
      gather(rows, r, values, step, keys, wide, part, first, moved);
      if (moved && far)
        for (int i = 0; i < rows.count; ++i)
          for (i64 c = 0; c < wide; c += lanes)
            store(r.far + i * wide + c, load(r.far + i * wide + c) * splat(r.softmax->alpha[i]));
      first = false, ++near;
    }
    if (first) std::memset(r.outputs, 0, sizeof(float) * static_cast<std::size_t>(wide) * item_rows);
    if (!far) return;
    bring_back(r.far, r.outputs, rows.count * wide);
    r.softmax->join();
    if (look_) r.seen->join(), r.marks.join(a_.rows);
  }

  // scores[key][row] = q . k, and unless plain, everything up to the mask, in powers of two.
  void score(const Rows& rows, Room& r, i64 kv_head, i64 start, int keys, int vectors, const Spans* spans,
             const char* const* few) {
    if (few)
      score_few<Format>(few, rows.count, row_of(a_.k, rows.batch, kv_head, start, Format::size),
                        a_.k.row * Format::size, keys, a_.d_k, row_of(a_.v, rows.batch, kv_head, start, Format::size),
                        a_.v.row * Format::size, a_.d_v * Format::size, r.scores);
    else
      score_many(rows, r, kv_head, start, keys, vectors, spans);
    if (!plain_) {
      const float* bias = nullptr;
      if (a_.bias.data) {
        read_bias(rows, start, keys, r.bias);
        bias = r.bias;
      }
      change_scores(a_, r.scores, bias, keys, vectors, nullptr);
    }
    if (spans) hide(r.scores, *r.mask, *spans, keys);
  }

  void score_many(const Rows& rows, Room& r, i64 kv_head, i64 start, int keys, int vectors, const Spans* spans) {
    i64 step;
    const char* k = static_cast<const char*>(
        readable_rows<Format>(row_of(a_.k, rows.batch, kv_head, start, Format::size), a_.k.row * Format::size, keys,
                              a_.d_k, r.keys, step));
    const i64 depth = a_.d_k / Format::together;
    using Entry = typename Format::Entry;
    if (!spans) {
      product<Entry, false, Into::set>(keys, vectors, k, step, r.queries, item_rows * 4, depth, r.scores, item_rows);
    } else {
      for (int s = 0; s * strip_keys < keys; ++s) {
        const int from = s * strip_keys, count = least(strip_keys, keys - from), v = spans->first[s];
        if (v < spans->last[s])
          product<Entry, false, Into::set>(count, spans->last[s] - v, k + from * step, step, r.queries + v * lanes,
                                           item_rows * 4, depth, r.scores + from * item_rows + v * lanes, item_rows);
      }
    }
  }

  void weigh_block(Room& r, float scale, const Spans* spans, int keys, int vectors) {
    if (sums_ == Look::moments)
      weigh_block<Look::moments>(r, scale, spans, keys, vectors);
    else if (sums_ == Look::sums)
      weigh_block<Look::sums>(r, scale, spans, keys, vectors);
    else
      weigh_block<Look::nothing>(r, scale, spans, keys, vectors);
  }

  template <Look look>
  void weigh_block(Room& r, float scale, const Spans* spans, int keys, int vectors) {
    if (a_.dropout.rate > 0)
      weigh<Format, look, true>(r.scores, scale, spans, keys, vectors, *r.softmax, r.seen, r.chances);
    else
      weigh<Format, look, false>(r.scores, scale, spans, keys, vectors, *r.softmax, r.seen, nullptr);
  }

  // outputs += weights values, each few rows over the keys that any of them attends to.
  void gather(const Rows& rows, Room& r, const void* values, i64 step, int keys, i64 wide, const Spans* spans,
              bool first, bool moved) {
    if (!spans) {
      gather_rows(0, rows.count, r, values, step, 0, keys, wide, first, moved);
      return;
    }
    for (int from = 0; from < rows.count; from += tile_rows) {
      const int count = least(tile_rows, rows.count - from);
      std::uint64_t some = 0;
      for (int i = from; i < from + count; ++i) some |= r.mask->by_row[i];
      int low = 0, high = 0;
      if (some) {
        low = __builtin_ctzll(some) & ~1;  // pairs stay together
        high = 64 - __builtin_clzll(some);
      }
      gather_rows(from, count, r, values, step, low, high, wide, first, moved);
    }
  }

  void gather_rows(int from, int count, Room& r, const void* values, i64 step, int low, int high, i64 wide, bool first,
                   bool moved) {
    constexpr int together = Format::together;
    using Entry = typename Format::Entry;
    const float* weights = r.scores + low / together * item_rows + from;
    const char* v = static_cast<const char*>(values) + low / together * step;
    const i64 depth = (high - low + together - 1) / together;
    float* out = r.outputs + from * wide;
    if (first)
      product<Entry, true, Into::set>(count, wide / lanes, weights, item_rows * 4, v, step, depth, out, wide);
    else if (moved)
      product<Entry, true, Into::scale>(count, wide / lanes, weights, item_rows * 4, v, step, depth, out, wide,
                                        r.softmax->alpha + from);
    else
      product<Entry, true, Into::add>(count, wide / lanes, weights, item_rows * 4, v, step, depth, out, wide);
  }

  void look(const Rows& rows, Room& r, float scale, const Spans* spans, i64 start, int keys, int vectors, bool moved) {
    r.seen->begin_block(rows.query[0] + a_.rows.q_minus_k - start, vectors);
    if (moved) r.seen->follow(*r.softmax, vectors), r.marks.follow(a_.rows, *r.softmax);
    if (a_.rows.spread || a_.rows.max_weight || a_.rows.max_key)
      r.seen->find_keys(r.scores, *r.softmax, keys, vectors, start);
    r.picks.look(a_.rows, rows, *r.seen, r.scores, spans, start, keys, vectors);
    r.marks.look(a_, a_.rows, rows.batch, *r.softmax, r.scores, scale, spans, start, keys, vectors);
  }
};

}  // namespace headwise::HEADWISE_ISA_NAME
