// Softmax of one query row, in double.
#pragma once

#include <cmath>
#include <limits>

#include "one_row.hpp"

namespace headwise {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// A row's scores and what softmax makes of them. A row is broken by a score or a sink of NaN or +inf; then the rest
// of it is not looked at, so that a call of nothing but NaN costs no more than others. `room`: k_len numbers.
class RowScores {
 public:
  RowScores(const OneRow& one, double* room) : p_(one.p), one_(one), scores_(room) {
    const double sink = p_.sinks ? static_cast<double>(p_.sinks[one.head]) : -infinity;
    broken = std::isnan(sink) || sink == infinity;
    for (std::int64_t j = 0; j < p_.k_len && !broken; ++j) {
      const double s = scores_[j] = one.score(j);
      broken = std::isnan(s) || s == infinity;
      if (broken || s > best_) best_ = s, best_key = j;
    }
    if (broken) return;
    high_ = std::fmax(best_, sink);
    if (high_ == -infinity) return;
    for (std::int64_t j = 0; j < p_.k_len; ++j) sum_ += std::exp(scores_[j] - high_);
    sum_ += std::exp(sink - high_);
  }

  bool broken = false;
  std::int64_t best_key = -1;

  double lse() const { return broken ? nan : high_ == -infinity ? -infinity : high_ + std::log(sum_); }
  double score(std::int64_t j) const { return scores_[j]; }
  double weight(std::int64_t j) const {  // of a key that may be attended to or not
    if (j < 0 || j >= p_.k_len) return 0;
    if (broken) return one_.score(j) == -infinity ? 0 : nan;
    return scores_[j] == -infinity ? 0 : std::exp(scores_[j] - high_) / sum_;
  }

 private:
  const Problem& p_;
  const OneRow& one_;
  double* scores_;
  double best_ = -infinity, high_ = -infinity, sum_ = 0;
};

}  // namespace headwise
