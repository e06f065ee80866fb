// Every kernel against the naive answer in double, over sizes and options drawn at random.
//
//     check [cases] [seed] [instruction set]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "draw.hpp"

using namespace headwise;
using namespace headwise::tests;

namespace {

int failures = 0;

// Compares numbers one by one; infinities and NaN must be the same.
void compare(const char* what, const Drawn& d, i64 count, double tolerance, const std::function<double(i64)>& mine,
             const std::function<double(i64)>& right) {
  double worst = 0;
  i64 place = -1;
  for (i64 n = 0; n < count; ++n) {
    const double x = mine(n), y = right(n);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double error = std::fabs(x - y) / (1 + std::fabs(y));
    if (!(error <= worst)) worst = std::isnan(error) ? INFINITY : error, place = n;
    if (worst == INFINITY) break;
  }
  if (worst <= tolerance) return;
  ++failures;
  std::printf("WRONG %s: %g off at %ld (%g, should be %g): %s\n", what, worst, static_cast<long>(place), mine(place),
              right(place), d.words().c_str());
}

struct Outputs {
  std::vector<float> entropy, distance, max_weight, lse, offset_mass, top_weights;
  std::vector<i64> max_key, top_keys;
  Tensor out;
};

Outputs run_forward(Drawn& d, bool look) {
  Case& c = d.c;
  const auto rows = static_cast<std::size_t>(c.p.batch * c.p.heads * c.p.q_len);
  Outputs o;
  o.out = c.out;
  o.out.make(NAN);
  o.lse.assign(rows, NAN);
  ForwardArguments f;
  static_cast<Problem&>(f) = c.p;
  f.out = o.out.output(), f.lse = o.lse.data();
  static const i64 offsets[] = {-1, 0, 5};
  if (look) {
    o.entropy = o.distance = o.max_weight = o.lse;
    o.max_key.assign(rows, 99);
    o.offset_mass.assign(rows * 3, NAN);
    o.top_keys.assign(rows * 4, 99), o.top_weights.assign(rows * 4, NAN);
    f.rows.entropy = o.entropy.data(), f.rows.distance = o.distance.data();
    f.rows.max_weight = o.max_weight.data(), f.rows.max_key = o.max_key.data();
    f.rows.q_minus_k = c.p.k_len - c.p.q_len;
    f.rows.offsets = offsets, f.rows.offset_count = 3, f.rows.offset_mass = o.offset_mass.data();
    f.rows.top_count = 4, f.rows.top_keys = o.top_keys.data(), f.rows.top_weights = o.top_weights.data();
  }
  if (forward(f) != Status::ok) ++failures, std::printf("WRONG status of forward\n");
  return o;
}

void check_forward(Drawn& d, const Answer& right, bool look) {
  const Problem& p = d.c.p;
  const bool half = p.type == Type::bf16;
  const Outputs o = run_forward(d, look);
  const auto at = [](i64 n) { return static_cast<std::size_t>(n); };
  const i64 rows = p.batch * p.heads * p.q_len;
  compare("output", d, rows * p.d_v, half ? 2e-2 : 1e-5,
          [&](i64 n) {
            const i64 row = n / p.d_v;
            return o.out.get(row / p.q_len / p.heads, row / p.q_len % p.heads, row % p.q_len, n % p.d_v);
          },
          [&](i64 n) { return right.out[at(n)]; });
  compare("lse", d, rows, 1e-5, [&](i64 n) { return o.lse[at(n)]; }, [&](i64 n) { return right.lse[at(n)]; });
  if (!look) return;
  const Outputs without = run_forward(d, false);
  compare("asking changes", d, static_cast<i64>(o.out.f.size()), 0, [&](i64 n) { return o.out.f[at(n)]; },
          [&](i64 n) { return without.out.f[at(n)]; });
  compare("asking changes", d, static_cast<i64>(o.out.h.size()), 0, [&](i64 n) { return o.out.h[at(n)]; },
          [&](i64 n) { return without.out.h[at(n)]; });
  compare("asking changes lse", d, rows, 0, [&](i64 n) { return o.lse[at(n)]; },
          [&](i64 n) { return without.lse[at(n)]; });
  compare("entropy", d, rows, 2e-5, [&](i64 n) { return o.entropy[at(n)]; },
          [&](i64 n) { return right.entropy[at(n)]; });
  compare("distance", d, rows, 2e-5, [&](i64 n) { return o.distance[at(n)]; },
          [&](i64 n) { return right.distance[at(n)]; });
  compare("largest weight", d, rows, 2e-5, [&](i64 n) { return o.max_weight[at(n)]; },
          [&](i64 n) { return right.max_weight[at(n)]; });
  compare("weight at its place", d, rows, 2e-5,
          [&](i64 n) {
            const i64 j = o.max_key[at(n)];
            return j < -1 || j >= p.k_len ? NAN : j == -1 ? 0 : right.weights[at(n * p.k_len + j)];
          },
          [&](i64 n) { return right.max_weight[at(n)]; });
  compare("offset mass", d, rows * 3, 2e-5, [&](i64 n) { return o.offset_mass[at(n)]; },
          [&](i64 n) {
            static const i64 offsets[] = {-1, 0, 5};
            const i64 row = n % rows, j = row % p.q_len + p.k_len - p.q_len + offsets[n / rows];
            return j < 0 || j >= p.k_len ? 0 : right.weights[at(row * p.k_len + j)];
          });
  compare("top weights", d, rows * 4, 2e-5, [&](i64 n) { return o.top_weights[at(n)]; },
          [&](i64 n) {
            std::vector<double> w(right.weights.begin() + n / 4 * p.k_len,
                                  right.weights.begin() + (n / 4 + 1) * p.k_len);
            std::sort(w.rbegin(), w.rend());
            return n % 4 < p.k_len ? w[at(n % 4)] : 0;
          });
  compare("weights of the top", d, rows * 4, 2e-5,
          [&](i64 n) {
            const i64 j = o.top_keys[at(n)];
            return j == -1 ? 0 : right.weights[at(n / 4 * p.k_len + j)];
          },
          [&](i64 n) { return o.top_weights[at(n)]; });
}

}  // namespace

int main(int count, char** words) {
  const int cases = count > 1 ? std::atoi(words[1]) : 200;
  const unsigned seed = count > 2 ? static_cast<unsigned>(std::atoi(words[2])) : 1;
  const Build* list;
  const int built = builds(&list);
  for (int n = 0; n < built; ++n) {
    if (count > 3 && std::string(words[3]) != list[n].name) continue;
    if (!list[n].supported || !use_isa(list[n].name)) continue;
    const int before = failures;
    for (int i = 0; i < cases; ++i) {
      Drawn d(seed * 100000u + static_cast<unsigned>(i));
      set_threads(1 + i % 3);
      const bool gradients = false;
      const Answer right = d.c.answer(gradients);
      check_forward(d, right, i % 2);
      if (failures > 20) break;
    }
    std::printf("%s: %d cases, %d wrong\n", list[n].name, cases, failures - before);
    if (failures > 20) break;
  }
  return failures != 0;
}
