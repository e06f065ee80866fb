// Whether a log-sum-exp is that of its row, made in another way.
#include <cmath>
#include <cstring>
#include <memory>
#include <new>

#include "pool.hpp"
#include "row_scores.hpp"

namespace headwise {
namespace {

class Check {
 public:
  explicit Check(const CheckArguments& arguments) : a_(arguments), all_(a_.batch * a_.heads * a_.q_len) {}

  Status run() {
    const double operations = 20.0 * static_cast<double>(a_.rows) * static_cast<double>(a_.k_len) *
                              static_cast<double>(a_.d_k + 10);  // one by one takes longer
    const Status status = pool::run(a_.rows, operations, [](void* self, std::int64_t piece) {
      return static_cast<Check*>(self)->piece(piece);
    }, this, a_.stop);
    std::memcpy(a_.error, &worst_, sizeof worst_);
    return status;
  }

 private:
  const CheckArguments& a_;
  std::int64_t all_;
  std::int32_t worst_ = 0;  // the bits of a float that is 0 or more: they are ordered as it is

  bool piece(std::int64_t number) {
    const std::int64_t row = a_.rows > 1 ? number * (all_ - 1) / (a_.rows - 1) : 0;
    double error = 0;
    if (!find_error(row, error)) return false;
    const float rounded = static_cast<float>(error);
    std::int32_t bits;
    std::memcpy(&bits, &rounded, sizeof bits);
    std::int32_t known = __atomic_load_n(&worst_, __ATOMIC_RELAXED);
    while (bits > known &&
           !__atomic_compare_exchange_n(&worst_, &known, bits, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return true;
  }

  bool find_error(std::int64_t row, double& error) const {
    const std::int64_t place = row / a_.q_len;
    const OneRow one{a_, place / a_.heads, place % a_.heads, row % a_.q_len};
    const std::unique_ptr<double[]> room(new (std::nothrow) double[static_cast<std::size_t>(a_.k_len) + 1]);
    if (!room) return false;
    const double right = RowScores(one, room.get()).lse(), claimed = static_cast<double>(a_.lse[row]);
    const bool nothing = right == -infinity || claimed == -infinity;
    error = !nothing ? std::fabs(std::expm1(right - claimed)) : right == claimed ? 0 : infinity;
    return true;
  }
};

}  // namespace

Status check_rows(const CheckArguments& arguments) { return Check(arguments).run(); }

}  // namespace headwise
