// What keys receive: one more half-pass over rows that are finished.
#pragma once

#include "bias.hpp"
#include "few.hpp"
#include "formats.hpp"
#include "weigh.hpp"

namespace headwise::HEADWISE_ISA_NAME {

// A piece owns some keys of one query head (whole cells of the map), and goes over all rows.
template <class Format>
class Measure {
 public:
  explicit Measure(const MeasureArguments& arguments) : a_(arguments), cut_(arguments) {
    plain_ = a_.softcap <= 0 && !a_.bias.data && a_.scale > 0;
    cells_ = a_.map ? a_.k_cells : (a_.k_len + tile_keys - 1) / tile_keys;
    // As many cells as make about `chunk_keys` keys, so that a row block is packed for enough of them.
    const i64 largest = cells_ ? (a_.k_len + cells_ - 1) / cells_ : 1;
    together_ = most<i64>(1, chunk_keys() / most<i64>(1, largest));
    chunks_ = (cells_ + together_ - 1) / together_;
  }

  Status run() {
    const double useful = a_.mask.band_high == unbounded_high ? 1 : 0.5;
    const double operations = 2.0 * useful * static_cast<double>(a_.batch * a_.heads) *
                              static_cast<double>(a_.q_len) * static_cast<double>(a_.k_len) *
                              static_cast<double>(a_.d_k);
    return pool::run(a_.batch * a_.heads * chunks_, operations, [](void* self, i64 piece) {
      return static_cast<Measure*>(self)->piece(piece);
    }, this, a_.stop);
  }

 private:
  // Queries are packed once for so many keys. By sizes alone: fewer where there would be few pieces for threads.
  i64 chunk_keys() const { return a_.batch * a_.heads * a_.k_len >= 32 * 1024 ? 1024 : 256; }

  const MeasureArguments& a_;
  Cut cut_;
  bool plain_;
  i64 cells_, together_, chunks_;

  struct Room {
    float *queries, *scores, *keys, *bias;
    const char* row[item_rows];  // of the queries
    bool few;                    // whether forward made these rows' scores in the way for few: to the same bit
    float *mass, *far;         // [key of the chunk][lanes]; what earlier blocks gave, as Softmax::far
    float* cell;               // [item_rows]: weight of each row in one cell of keys, without its share
    double* map;               // [cell of keys of the piece]: what the map's row `q_cell` is to get
    i64 q_cell = 0, first_cell = 0, last_cell = 0;
    i64 q_cell_of[item_rows];  // the cell of each row
    float *reference, *share;  // [item_rows]: RowStatistics'; of rows that are not there such that all weights are 0
    TileMask* mask;
  };

  // The cell whose weights are in Room::cell, and how many tiles gave them.
  struct Open {
    i64 cell = -1;
    int tiles = 0;
  };

  // The first key of a cell: floor(x cells / n) is the cell of x.
  i64 first_of(i64 cell) const { return cells_ ? (cell * a_.k_len + cells_ - 1) / cells_ : 0; }

  bool room_for(Room& r, i64 keys) const {
    Buffer buffer;
    for (int twice = 0; twice < 2; ++twice) {
      if (twice && !buffer.take()) return false;
      buffer.part(r.queries, (a_.d_k + 1) / Format::together * item_rows);
      buffer.part(r.scores, tile_keys * item_rows);
      buffer.part(r.keys, Format::in_place ? 0 : a_.d_k * tile_keys);
      buffer.part(r.bias, a_.bias.data ? tile_keys * item_rows : 0);
      buffer.part(r.mass, keys * lanes);
      buffer.part(r.far, a_.q_len > near_tiles * item_rows ? keys * lanes : 0);
      buffer.part(r.cell, item_rows);
      buffer.part(r.map, together_);
      buffer.part(r.reference, item_rows);
      buffer.part(r.share, item_rows);
      buffer.part(r.mask, 1);
    }
    return true;
  }

  bool piece(i64 number) {
    const i64 chunk = number % chunks_, place = number / chunks_;  // place: entry and head
    const i64 b = place / a_.heads, h = place % a_.heads;
    const i64 first_cell = chunk * together_, last_cell = least(cells_, first_cell + together_);
    const i64 start = first_of(first_cell), stop = first_of(last_cell);
    Room r;
    if (!room_for(r, stop - start)) return false;
    const i64 count = (stop - start) * lanes;
    std::memset(r.mass, 0, sizeof(float) * static_cast<std::size_t>(count));
    r.first_cell = first_cell, r.last_cell = last_cell;
    for (i64 c = 0; c < together_; ++c) r.map[c] = 0;
    if (a_.map)
      for (i64 q = 0; q < a_.q_cells; ++q)
        for (i64 c = first_cell; c < last_cell; ++c) a_.map[(place * a_.q_cells + q) * a_.k_cells + c] = 0;
    int near = 0;  // blocks whose sums are in `mass`
    bool far = false;
    for (i64 first = 0; first < a_.q_len; first += item_rows) {
      if (pool::cancelled()) return true;
      if (near == near_tiles) {
        put_aside(r.mass, r.far, far, count);
        near = 0, far = true;
      }
      const Rows rows(a_, b, h, first, static_cast<int>(least<i64>(item_rows, a_.q_len - first)));
      if (rows.end <= start || rows.begin >= stop) continue;
      read_rows(rows, r, place);
      ++near;
      Open open;
      if (a_.map) {
        for (int i = 0; i < rows.count; ++i) r.q_cell_of[i] = rows.query[i] * a_.q_cells / a_.q_len;
        if (r.q_cell_of[0] != r.q_cell) turn_to(r.q_cell_of[0], r, place);
      }
      const i64 until = least(stop, rows.end);
      for (i64 at = most(start, rows.begin); at < until; at += tile_keys) {
        const int keys = static_cast<int>(least<i64>(tile_keys, until - at));
        const bool some = weigh_keys(rows, r, at, keys, r.mass + (at - start) * lanes);
        if (some && a_.map) add_cells(rows, r, at, keys, place, open);
      }
      if (open.cell >= 0) add_cell(rows, r, place, open.cell);
    }
    if (a_.map) turn_to(0, r, place);
    if (far) put_aside(r.mass, r.far, far, count);
    const float* mass = far ? r.far : r.mass;
    if (a_.key_mass)
      for (i64 j = start; j < stop; ++j) a_.key_mass[place * a_.k_len + j] = sum_of(load(mass + (j - start) * lanes));
    return true;
  }

  void read_rows(const Rows& rows, Room& r, i64 place) {
    for (int i = 0; i < rows.count; ++i)
      r.row[i] = row_of(a_.q, rows.batch, rows.head[i], rows.query[i], Format::size);
    r.few = in_few<Format>(a_, cut_.together(a_, rows.head[0], rows.query[0]));
    if (r.few)
      std::memset(r.scores, 0, sizeof(float) * tile_keys * item_rows);  // the lanes of rows that are not there
    else
      pack<typename Format::Pack>(r.row, rows.count, a_.d_k / Format::together, r.queries);
    for (int i = 0; i < item_rows; ++i) {
      r.reference[i] = i < rows.count ? a_.reference[place * a_.q_len + rows.query[i]] : largest_float;
      r.share[i] = i < rows.count ? a_.share[place * a_.q_len + rows.query[i]] : 0.0f;
    }
  }

  // r.scores become weights without their rows' shares; with these, they are added to `mass`. False: there are none.
  bool weigh_keys(const Rows& rows, Room& r, i64 at, int keys, float* mass) {
    const Tile kind = rows.look(at, keys, *r.mask);
    if (kind == Tile::empty) return false;
    const int vectors = (rows.count + lanes - 1) / lanes;
    Spans spans;
    if (kind == Tile::partial) spans = spans_of(*r.mask, keys);
    const Spans* part = kind == Tile::partial ? &spans : nullptr;
    score(rows, r, at, keys, vectors, part);
    if (part || !plain_)
      weigh_some(r, part, keys, vectors, mass);
    else if (vectors == item_vectors)
      weigh_all(r, keys, item_vectors, mass);
    else
      weigh_all(r, keys, vectors, mass);
    return true;
  }

  void score(const Rows& rows, Room& r, i64 at, int keys, int vectors, const Spans* spans) {
    const i64 kv_head = rows.head[0] / (a_.heads / a_.kv_heads), far = a_.k.row * Format::size;
    const char* k = row_of(a_.k, rows.batch, kv_head, at, Format::size);
    if (r.few)
      score_few<Format>(r.row, rows.count, k, far, keys, a_.d_k, k, far, 0, r.scores);
    else
      score_many(r, k, keys, vectors, spans);
    if (!plain_) {
      if (a_.bias.data) read_bias(rows, at, keys, r.bias);
      change_scores(a_, r.scores, a_.bias.data ? r.bias : nullptr, keys, vectors, nullptr);
    }
    if (spans) hide(r.scores, *r.mask, *spans, keys);
  }

  void score_many(Room& r, const char* rows, int keys, int vectors, const Spans* spans) {
    i64 step;
    const char* k = static_cast<const char*>(
        readable_rows<Format>(rows, a_.k.row * Format::size, keys, a_.d_k, r.keys, step));
    const i64 depth = a_.d_k / Format::together;
    using Entry = typename Format::Entry;
    for (int from = 0; from < keys; from += spans ? strip_keys : keys) {
      const int s = from / strip_keys, count = spans ? least(strip_keys, keys - from) : keys;
      const int v = spans ? spans->first[s] : 0, last = spans ? spans->last[s] : vectors;
      if (v < last)
        product<Entry, false, Into::set>(count, last - v, k + from * step, step, r.queries + v * lanes, item_rows * 4,
                                         depth, r.scores + from * item_rows + v * lanes, item_rows);
    }
  }

  float scale() const { return plain_ ? static_cast<float>(a_.scale) * log2_e : 1.0f; }

  HEADWISE_INLINE void weigh_all(Room& r, int keys, int vectors, float* mass) const {
    const Vector factor = splat(scale());
    Vector minus[item_vectors], share[item_vectors];
    for (int v = 0; v < vectors; ++v) minus[v] = -load(r.reference + v * lanes), share[v] = load(r.share + v * lanes);
    for (int j = 0; j < keys; ++j) {
      float* score = r.scores + j * item_rows;
      Vector sum{};
      for (int v = 0; v < vectors; ++v) {
        const Vector p = exp2(fma(load(score + v * lanes), factor, minus[v]));
        sum = fma(p, share[v], sum);
        store(score + v * lanes, p);
      }
      store(mass + j * lanes, load(mass + j * lanes) + sum);
    }
  }

  // Where some pairs are masked, or a score may be -inf by itself.
  void weigh_some(Room& r, const Spans* spans, int keys, int vectors, float* mass) const {
    const Vector factor = splat(scale()), none = splat(-__builtin_inff());
    for (int j = 0; j < keys; ++j) {
      const int s = j / strip_keys, first = spans ? spans->first[s] : 0, last = spans ? spans->last[s] : vectors;
      float* score = r.scores + j * item_rows;
      Vector sum{};
      for (int v = 0; v < vectors; ++v) {
        Vector p{};
        if (v >= first && v < last) {
          const Vector x = load(score + v * lanes);
          // 0 where it is masked, also where the row is broken, and NaN.
          p = select(x == none, Vector{}, exp2(fma(x, factor, -load(r.reference + v * lanes))));
          sum += select(x == none, Vector{}, p * load(r.share + v * lanes));
        }
        store(score + v * lanes, p);
      }
      store(mass + j * lanes, load(mass + j * lanes) + sum);
    }
  }

  // The tile's weights, summed over each cell's keys. Of the last cell, r.cell is left for the tiles that follow.
  void add_cells(const Rows& rows, Room& r, i64 at, int keys, i64 place, Open& open) {
    const int vectors = (rows.count + lanes - 1) / lanes;
    for (int j = 0; j < keys;) {
      const i64 cell = (at + j) * cells_ / a_.k_len;
      const int stop = static_cast<int>(least<i64>(keys, first_of(cell + 1) - at));
      const bool begin = open.cell != cell || open.tiles == near_tiles;
      if (begin) {
        if (open.cell >= 0) add_cell(rows, r, place, open.cell);
        open = {cell, 0};
      }
      for (int v = 0; v < vectors; ++v) {
        Vector sum{};
        for (int n = j; n < stop;) {
          Vector strip{};
          for (const int end = least(stop, n + strip_keys); n < end; ++n)
            strip += load(r.scores + n * item_rows + v * lanes);
          sum += strip;
        }
        store(r.cell + v * lanes, begin ? sum : load(r.cell + v * lanes) + sum);
      }
      ++open.tiles;
      j = stop;
    }
  }

  // What a block of rows adds to the map in one cell of keys: one number for each cell of rows.
  void add_cell(const Rows& rows, Room& r, i64 place, i64 cell) {
    for (int i = 0; i < rows.count;) {
      const i64 q_cell = r.q_cell_of[i];
      double sum = 0;
      for (; i < rows.count && r.q_cell_of[i] == q_cell; ++i) sum += static_cast<double>(r.cell[i]) * r.share[i];
      if (q_cell == r.q_cell)
        r.map[cell - r.first_cell] += sum;
      else
        a_.map[(place * a_.q_cells + q_cell) * a_.k_cells + cell] += static_cast<float>(sum);
    }
  }

  // Adds the map's row that is held in double, and holds another.
  void turn_to(i64 q_cell, Room& r, i64 place) {
    for (i64 c = r.first_cell; c < r.last_cell; ++c) {
      a_.map[(place * a_.q_cells + r.q_cell) * a_.k_cells + c] += static_cast<float>(r.map[c - r.first_cell]);
      r.map[c - r.first_cell] = 0;
    }
    r.q_cell = q_cell;
  }
};

}  // namespace headwise::HEADWISE_ISA_NAME
