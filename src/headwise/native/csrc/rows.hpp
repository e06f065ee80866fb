// The query rows of one piece of work, and which keys each may attend to.
#pragma once

#include "simd.hpp"

namespace headwise::HEADWISE_ISA_NAME {

constexpr int tile_keys = 64;   // keys of one tile of the mask: one bit each
constexpr int near_tiles = 64;  // after so many, sums are put aside, and begin again at 0

enum class Tile { empty, partial, full };

// Who may attend to whom in 64 rows and up to 64 keys. Rows and keys that are not there have no bits.
struct TileMask {
  Tile kind;
  std::uint64_t by_row[item_rows];  // bit j: key j
  std::uint64_t by_key[tile_keys];  // bit i: row i
};

// A row's keys, [first, last).
struct Range {
  i64 first, last;
};

HEADWISE_INLINE Range both(Range a, Range b) { return {most(a.first, b.first), least(a.last, b.last)}; }

HEADWISE_INLINE std::uint64_t range_bits(Range range, i64 start, int count) {
  const i64 low = most<i64>(range.first - start, 0), high = least<i64>(range.last - start, count);
  if (low >= high) return 0;
  return (~std::uint64_t{0} >> (64 - (high - low))) << low;
}

// A 64 x 64 matrix of bits, transposed in place (halves, then quarters, and so on).
inline void transpose_bits(std::uint64_t* x) {
  std::uint64_t mask = 0x00000000FFFFFFFFull;
  for (int s = 32; s; s >>= 1, mask ^= mask << s)
    for (int i = 0; i < 64; i = ((i | s) + 1) & ~s) {
      const std::uint64_t t = ((x[i] >> s) ^ x[i | s]) & mask;
      x[i] ^= t << s;
      x[i | s] ^= t;
    }
}

// b + c without wrapping around.
HEADWISE_INLINE i64 add_safely(i64 b, i64 c) {
  i64 sum;
  if (__builtin_add_overflow(b, c, &sum)) return c > 0 ? INT64_MAX : INT64_MIN;
  return sum;
}

// Whether any of the rows first, first + 1, ... of a block may attend to the keys start .. start + keys - 1, by a look
// at the band alone: with a short window, most blocks are far from most keys.
inline bool may_reach(const Problem& p, i64 b, i64 first, i64 start, i64 keys) {
  const Mask& m = p.mask;
  if (m.prefix && m.prefix[b * m.prefix_batch] > start) return true;
  const i64 last = least(first + item_rows, p.q_len) - 1;
  return (m.band_high == unbounded_high || start <= add_safely(last, m.band_high)) &&
         (m.band_low == unbounded_low || start + keys > add_safely(first, m.band_low));
}

// How query rows are cut into pieces: 64 rows of one head, or, where queries are few, of all the heads that
// share keys.
struct Cut {
  i64 heads, rows, per_head;  // heads (of queries or keys) of an entry, rows of one, pieces of one
  i64 group;                  // query heads that are taken together

  explicit Cut(const Problem& p) {
    const i64 groups = p.kv_heads ? p.heads / p.kv_heads : 1;
    group = p.q_len < item_rows ? groups : 1;
    heads = group == 1 ? p.heads : p.kv_heads;
    rows = p.q_len * group;
    per_head = (rows + item_rows - 1) / item_rows;
  }
  i64 pieces(const Problem& p) const { return p.batch * heads * per_head; }

  // How many rows the piece has that holds this row of a query head.
  int together(const Problem& p, i64 head, i64 query) const {
    const i64 row = (group == 1 ? 0 : head % group * p.q_len) + query;
    return static_cast<int>(least<i64>(item_rows, rows - row / item_rows * item_rows));
  }
};

class Rows {
 public:
  static constexpr int most_ranges = 4;

  // `count_` rows from `start` on of those of query heads first_head, first_head + 1, ..., one head after another.
  Rows(const Problem& p, i64 b, i64 first_head, i64 start, int count_) : problem(p), batch(b), count(count_) {
    begin = INT64_MAX, end = INT64_MIN, full_begin = INT64_MIN, full_end = INT64_MAX;
    i64 h = first_head + start / p.q_len, q = start % p.q_len;
    for (int i = 0; i < count; ++i) {
      head[i] = static_cast<std::int32_t>(h);
      query[i] = q;
      find_ranges(i);
      if (++q == p.q_len) q = 0, ++h;
    }
    for (int i = 0; i < count; ++i) {
      const Range whole = {range[i][0].first, range[i][ranges[i] - 1].last};
      if (whole.first < whole.last) {
        begin = least(begin, whole.first);
        end = most(end, whole.last);
      }
      if (ranges[i] > 1 || whole.first >= whole.last) full_end = INT64_MIN;
      full_begin = most(full_begin, whole.first);
      full_end = least(full_end, whole.last);
    }
    if (begin >= end) begin = end = 0;
    if (p.mask.q_ids) find_documents();
  }

  // One word for the keys start .. start + keys - 1 (keys <= 64); where it is partial, the bits too.
  Tile look(i64 start, int keys, TileMask& mask) const {
    const Mask& m = problem.mask;
    if (start >= end || start + keys <= begin) return mask.kind = Tile::empty;
    const bool within = full_begin <= start && start + keys <= full_end;
    if (!m.q_ids && !m.dense && within) return mask.kind = Tile::full;
    bool same_document = true;
    if (m.q_ids) {
      const Tile kind = look_at_documents(start, keys);
      if (kind == Tile::empty) return mask.kind = Tile::empty;
      same_document = kind == Tile::full;
      if (same_document && within && !m.dense) return mask.kind = Tile::full;
    }
    const std::uint64_t every = ~std::uint64_t{0} >> (64 - keys);
    std::uint64_t some = 0, all = every;
    for (int i = 0; i < item_rows; ++i) {
      std::uint64_t bits = 0;
      if (i < count) {
        for (int r = 0; r < ranges[i]; ++r) bits |= range_bits(range[i][r], start, keys);
        if (bits && !same_document) bits &= document_bits(i, start, keys);
        if (bits && m.dense) bits &= dense_bits(i, start, keys);
        some |= bits;
        all &= bits;
      }
      mask.by_row[i] = bits;
    }
    if (!some) return mask.kind = Tile::empty;
    if (all == every) return mask.kind = Tile::full;
    std::memcpy(mask.by_key, mask.by_row, sizeof mask.by_key);
    transpose_bits(mask.by_key);
    return mask.kind = Tile::partial;
  }

  const Problem& problem;
  i64 batch;
  int count;
  std::int32_t head[item_rows];
  i64 query[item_rows];
  i64 begin, end;  // no row attends to a key outside; begin == end == 0 where there is none

 private:
  i64 full_begin, full_end;  // every row attends to every key inside, but for documents and the dense mask
  Range range[item_rows][most_ranges];
  int ranges[item_rows];
  i64 id[item_rows];
  i64 least_id, most_id;  // among rows that are in a document
  bool one_id;

  void find_ranges(int i) {
    const Mask& m = problem.mask;
    const i64 q = query[i];
    const Range keys = both({0, problem.k_len},
                            {m.key_begin ? m.key_begin[batch * m.key_begin_batch] : 0,
                             m.key_end ? m.key_end[batch * m.key_end_batch] : problem.k_len});
    Range found[2] = {{0, problem.k_len}, {0, 0}};
    int several = 1;
    if (m.band_low != unbounded_low || m.band_high != unbounded_high) {
      found[0].first = m.band_low == unbounded_low ? 0 : add_safely(q, m.band_low);
      found[0].last = m.band_high == unbounded_high ? problem.k_len : add_safely(add_safely(q, m.band_high), 1);
      if (m.prefix) {
        const Range prefix = {0, m.prefix[batch * m.prefix_batch]};
        if (found[0].first >= found[0].last || found[0].last <= prefix.first) {
          found[0] = prefix;
        } else if (found[0].first <= prefix.last) {
          found[0] = {least(found[0].first, prefix.first), most(found[0].last, prefix.last)};
        } else {
          found[1] = found[0];
          found[0] = prefix;
          several = prefix.first < prefix.last ? 2 : 1;
          if (several == 1) found[0] = found[1];
        }
      }
    }
    const std::int32_t* listed = nullptr;
    int listed_count = 1;
    if (m.ranges) {
      listed = m.ranges + batch * m.range_batch + head[i] * m.range_head + q * m.range_row;
      listed_count = m.range_count;
    }
    int n = 0;
    for (int a = 0; a < several; ++a)
      for (int l = 0; l < listed_count; ++l) {
        Range r = both(found[a], keys);
        if (listed) r = both(r, {listed[2 * l], listed[2 * l + 1]});
        if (r.first < r.last && n < most_ranges) range[i][n++] = r;
      }
    if (n == 0) range[i][n++] = {0, 0};
    if (n > 1) sort(range[i], n);
    ranges[i] = n;
  }

  static void sort(Range* r, int n) {  // by first key: few, so by insertion
    for (int i = 1; i < n; ++i)
      for (int j = i; j > 0 && r[j].first < r[j - 1].first; --j) {
        const Range t = r[j];
        r[j] = r[j - 1];
        r[j - 1] = t;
      }
  }

  void find_documents() {
    const Mask& m = problem.mask;
    least_id = INT64_MAX, most_id = INT64_MIN, one_id = true;
    for (int i = 0; i < count; ++i) {
      id[i] = m.q_ids[batch * m.q_ids_batch + query[i]];
      one_id = one_id && id[i] == id[0] && id[i] >= 0;
      if (id[i] < 0) continue;
      least_id = least(least_id, id[i]);
      most_id = most(most_id, id[i]);
    }
  }

  Tile look_at_documents(i64 start, int keys) const {
    const i64* k = problem.mask.k_ids + batch * problem.mask.k_ids_batch + start;
    i64 low = INT64_MAX, high = INT64_MIN, all_low = INT64_MAX;
    for (int j = 0; j < keys; ++j) {
      all_low = least(all_low, k[j]);
      low = least(low, k[j] < 0 ? INT64_MAX : k[j]);
      high = most(high, k[j]);
    }
    if (low > most_id || high < least_id) return Tile::empty;
    return one_id && all_low == high && high == id[0] ? Tile::full : Tile::partial;
  }

  std::uint64_t document_bits(int i, i64 start, int keys) const {
    if (id[i] < 0) return 0;
    const i64* k = problem.mask.k_ids + batch * problem.mask.k_ids_batch + start;
    std::uint64_t bits = 0;
    for (int j = 0; j < keys; ++j) bits |= static_cast<std::uint64_t>(k[j] == id[i]) << j;
    return bits;
  }

  std::uint64_t dense_bits(int i, i64 start, int keys) const {
    const Mask& m = problem.mask;
    const std::uint8_t* at = m.dense + batch * m.dense_batch + head[i] * m.dense_head + query[i] * m.dense_row +
                             start * m.dense_column;
    if (m.dense_column == 0) return *at ? ~std::uint64_t{0} : 0;
    std::uint64_t bits = 0;
#if defined(__AVX512BW__)
    if (m.dense_column == 1) {
      const __mmask64 there = ~std::uint64_t{0} >> (64 - keys);
      const __m512i bytes = _mm512_maskz_loadu_epi8(there, at);
      return _mm512_test_epi8_mask(bytes, bytes);
    }
#endif
    if (m.dense_column == 1 && keys == 64) {  // eight bytes become eight bits: true is any that isn't 0
      for (int j = 0; j < 64; j += 8) {
        std::uint64_t eight;
        std::memcpy(&eight, at + j, 8);
        eight = (((eight & 0x7F7F7F7F7F7F7F7Full) + 0x7F7F7F7F7F7F7F7Full) | eight) >> 7;
        bits |= ((eight & 0x0101010101010101ull) * 0x0102040810204080ull >> 56) << j;
      }
      return bits;
    }
    for (int j = 0; j < keys; ++j) bits |= static_cast<std::uint64_t>(at[j * m.dense_column] != 0) << j;
    return bits;
  }
};

}  // namespace headwise::HEADWISE_ISA_NAME
