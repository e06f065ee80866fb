#include "careful.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "chance.hpp"
#include "one_row.hpp"

namespace headwise {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// A row's softmax: whether it is broken (a score of NaN or +inf), dead (nothing but -inf), or else its maximum
// (sink included) and the sum relative to it.
struct RowSums {
  bool broken = false, dead = true;
  double high = -infinity, sum = 0;
  double best = -infinity;
  std::int64_t best_key = -1;
};

RowSums sums_of(const ForwardArguments& a, const OneRow& row) {
  RowSums r;
  for (std::int64_t j = 0; j < a.k_len; ++j) {
    const double s = row.score(j);
    if (std::isnan(s) || s == infinity) {
      if (!r.broken) r.best_key = j;
      r.broken = true;
    } else if (!r.broken && s > r.best) {
      r.best = s;
      r.best_key = j;
    }
  }
  r.dead = !r.broken && r.best == -infinity;
  r.high = r.best;
  if (a.sinks) r.high = std::fmax(r.high, static_cast<double>(a.sinks[row.head]));
  if (r.broken || r.high == -infinity) return r;
  for (std::int64_t j = 0; j < a.k_len; ++j) r.sum += std::exp(row.score(j) - r.high);
  if (a.sinks) r.sum += std::exp(a.sinks[row.head] - r.high);
  return r;
}

void write_statistics(const ForwardArguments& a, const OneRow& row, const RowSums& r, std::int64_t place) {
  const RowStatistics& ask = a.rows;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto weight = [&](double s) { return r.broken ? nan : s == -infinity ? 0 : std::exp(s - r.high) / r.sum; };
  double entropy = r.broken ? nan : 0, distance = entropy;
  for (std::int64_t j = 0; j < a.k_len && !r.broken; ++j) {
    const double p = weight(row.score(j));
    if (p > 0) entropy -= p * std::log(p);
    distance += p * std::fabs(static_cast<double>(row.query + ask.q_minus_k - j));
  }
  if (ask.entropy) ask.entropy[place] = static_cast<float>(entropy);
  if (ask.distance) ask.distance[place] = static_cast<float>(distance);
  if (ask.max_weight) ask.max_weight[place] = static_cast<float>(weight(r.best));
  if (ask.max_key) ask.max_key[place] = r.best_key;
  for (std::int64_t o = 0; o < ask.offset_count; ++o) {
    const std::int64_t j = row.query + ask.q_minus_k + ask.offsets[o];
    const double s = j < 0 || j >= a.k_len ? -infinity : row.score(j);
    ask.offset_mass[o * a.batch * a.heads * a.q_len + place] =
        static_cast<float>(s == -infinity ? 0 : weight(s));
  }
  for (std::int64_t t = 0; t < ask.top_count; ++t) {  // the heaviest not yet listed: earlier ones first
    std::int64_t* keys = ask.top_keys + place * ask.top_count;
    std::int64_t found = -1;
    double best = -infinity;
    for (std::int64_t j = 0; j < a.k_len; ++j) {
      bool listed = false;
      for (std::int64_t u = 0; u < t; ++u) listed = listed || keys[u] == j;
      const double s = row.score(j);
      if (!listed && s > best) {
        best = s;
        found = j;
      }
    }
    keys[t] = found;
    ask.top_weights[place * ask.top_count + t] = static_cast<float>(found < 0 ? 0 : weight(best));
  }
}

}  // namespace

void careful_row(const ForwardArguments& a, std::int64_t b, std::int64_t h, std::int64_t i) {
  const OneRow one{a, b, h, i};
  const RowSums r = sums_of(a, one);
  const std::int64_t place = (b * a.heads + h) * a.q_len + i;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  bool finite = !r.broken;
  a.lse[place] = static_cast<float>(r.broken ? nan : r.high == -infinity ? -infinity : r.high + std::log(r.sum));
  const std::uint32_t row = row_hash(a, b, h, i);
  const std::int32_t below = drop_below(a.dropout.rate);
  const double kept = 1 / (1 - a.dropout.rate);
  for (std::int64_t c = 0; c < a.d_v; ++c) {
    double sum = 0, taint = 0;
    for (std::int64_t j = 0; j < a.k_len && !r.broken && !r.dead; ++j) {
      const double s = one.score(j);
      if (s == -infinity) continue;  // takes no part, whatever the value holds
      const double v = one.value(j, c);
      if (!std::isfinite(v)) {
        taint += v;
        continue;
      }
      if (a.dropout.rate > 0) {
        if (static_cast<std::int32_t>(mix(row ^ key_hash(a, j))) < below) continue;
        sum += std::exp(s - r.high) / r.sum * v * kept;
      } else {
        sum += std::exp(s - r.high) / r.sum * v;
      }
    }
    finite = finite && std::isfinite(taint);
    write_number(a.out, a.type, b, h, i, c, r.broken ? nan : sum + taint);
  }
  write_statistics(a, one, r, place);
  if (!finite && a.not_finite) __atomic_store_n(a.not_finite, 1, __ATOMIC_RELAXED);  // other threads may, too
}

}  // namespace headwise
