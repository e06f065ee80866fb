#include "careful.hpp"

#include <cmath>
#include <cstring>
#include <memory>
#include <new>

#include "chance.hpp"
#include "row_scores.hpp"

namespace headwise {
namespace {

// sum_j dropout(P)_j v_j in `sums`. False where a value that takes part isn't finite: then it is in the sums.
bool sum_values(const ForwardArguments& a, const OneRow& one, const RowScores& row, double* sums) {
  bool finite = true;
  const std::uint32_t hash = row_hash(a, one.batch, one.head, one.query);
  const std::int32_t below = drop_below(a.dropout.rate);
  for (std::int64_t c = 0; c < a.d_v; ++c) sums[c] = 0;
  for (std::int64_t j = 0; j < a.k_len; ++j) {
    if (row.score(j) == -infinity) continue;  // takes no part, whatever the value holds
    const bool dropped = a.dropout.rate > 0 && static_cast<std::int32_t>(mix(hash ^ key_hash(a, j))) < below;
    const double weight = dropped ? 0 : row.weight(j) / (1 - a.dropout.rate);
    for (std::int64_t c = 0; c < a.d_v; ++c) {
      const double v = one.value(j, c);
      if (std::isfinite(v)) {
        sums[c] += weight * v;
      } else {  // marks the sum, however small its weight
        sums[c] += v;
        finite = false;
      }
    }
  }
  return finite;
}

// The variance of the keys' places.
double spread(const ForwardArguments& a, const RowScores& row) {
  if (row.broken) return nan;
  double mass = 0, mean = 0, variance = 0;
  for (std::int64_t j = 0; j < a.k_len; ++j) {
    mass += row.weight(j);
    mean += row.weight(j) * static_cast<double>(j);
  }
  if (mass == 0) return 0;
  mean /= mass;
  for (std::int64_t j = 0; j < a.k_len; ++j) {
    const double apart = static_cast<double>(j) - mean;
    variance += row.weight(j) * apart * apart;
  }
  return variance / mass;
}

// The mass on marked keys.
void write_marked(const ForwardArguments& a, const OneRow& one, const RowScores& row, std::int64_t place) {
  const RowStatistics& ask = a.rows;
  for (std::int64_t c = 0; c < ask.mark_columns; ++c) {
    double mass = row.broken ? nan : 0;
    for (std::int64_t set = 0; set < ask.mark_sets && !row.broken; ++set) {
      const std::int32_t* marks = ask.marks_of(a, set, one.batch);
      for (std::int64_t j = 0; j < a.k_len; ++j)
        if (marks[j] == c) mass += row.weight(j);
    }
    ask.mark_mass[place * ask.mark_columns + c] = static_cast<float>(mass);
  }
}

void write_statistics(const ForwardArguments& a, const OneRow& one, const RowScores& row, std::int64_t place) {
  const RowStatistics& ask = a.rows;
  double entropy = row.broken ? nan : 0, distance = entropy;
  for (std::int64_t j = 0; j < a.k_len && !row.broken; ++j) {
    const double p = row.weight(j);
    if (p > 0) entropy -= p * std::log(p);
    distance += p * std::fabs(static_cast<double>(one.query + ask.q_minus_k - j));
  }
  if (ask.entropy) ask.entropy[place] = static_cast<float>(entropy);
  if (ask.distance) ask.distance[place] = static_cast<float>(distance);
  if (ask.spread) ask.spread[place] = static_cast<float>(spread(a, row));
  if (ask.max_weight) ask.max_weight[place] = static_cast<float>(row.weight(row.best_key));
  if (ask.max_key) ask.max_key[place] = row.best_key;
  for (std::int64_t o = 0; o < ask.offset_count; ++o)
    ask.offset_mass[o * a.batch * a.heads * a.q_len + place] =
        static_cast<float>(row.weight(one.query + ask.q_minus_k + ask.offsets[o]));
  for (std::int64_t t = 0; t < ask.top_count; ++t) {  // the heaviest not yet listed: earlier ones first
    std::int64_t* keys = ask.top_keys + place * ask.top_count;
    std::int64_t found = row.broken && t == 0 ? row.best_key : -1;
    for (std::int64_t j = 0; j < a.k_len && !row.broken; ++j) {
      if (row.score(j) == -infinity || (found >= 0 && row.score(j) <= row.score(found))) continue;
      bool listed = false;
      for (std::int64_t u = 0; u < t; ++u) listed = listed || keys[u] == j;
      if (!listed) found = j;
    }
    keys[t] = found;
    ask.top_weights[place * ask.top_count + t] = static_cast<float>(row.weight(found));
  }
}

}  // namespace

bool careful_row(const ForwardArguments& a, std::int64_t b, std::int64_t h, std::int64_t i) {
  const std::unique_ptr<double[]> room(new (std::nothrow) double[static_cast<std::size_t>(a.k_len + a.d_v)]);
  if (!room) return false;
  const OneRow one{a, b, h, i};
  const RowScores row(one, room.get());
  const std::int64_t place = (b * a.heads + h) * a.q_len + i;
  a.lse[place] = static_cast<float>(row.lse());
  double* sums = room.get() + a.k_len;
  const bool finite = !row.broken && sum_values(a, one, row, sums);
  for (std::int64_t c = 0; c < a.d_v; ++c) write_number(a.out, a.type, b, h, i, c, row.broken ? nan : sums[c]);
  write_statistics(a, one, row, place);
  write_marked(a, one, row, place);
  if (!finite && a.not_finite) __atomic_store_n(a.not_finite, 1, __ATOMIC_RELAXED);  // other threads may, too
  return true;
}

}  // namespace headwise
