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
  std::vector<float> entropy, distance, spread, max_weight, lse, offset_mass, top_weights, marked, reference, share;
  std::vector<i64> max_key, top_keys;
  Tensor out;
};

// Two sets of marks: classes that change from entry to entry, with keys that have none, and one key alone.
constexpr i64 mark_columns = 4;

i64 mark_of(i64 set, i64 b, i64 j) { return set ? (j == 1 ? 3 : -1) : (j / 2 + b) % 5 > 2 ? -1 : (j / 2 + b) % 5; }

std::vector<std::int32_t> marks_of(const Problem& p) {
  std::vector<std::int32_t> marks;
  for (i64 set = 0; set < 2; ++set)
    for (i64 b = 0; b < p.batch; ++b)
      for (i64 j = 0; j < p.k_len; ++j) marks.push_back(static_cast<std::int32_t>(mark_of(set, b, j)));
  return marks;
}

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
  const std::vector<std::int32_t> marks = marks_of(c.p);
  o.reference = o.share = o.lse;
  f.rows.reference = o.reference.data(), f.rows.share = o.share.data();
  if (look) {
    o.entropy = o.distance = o.spread = o.max_weight = o.lse;
    o.max_key.assign(rows, 99);
    o.offset_mass.assign(rows * 3, NAN);
    o.top_keys.assign(rows * 4, 99), o.top_weights.assign(rows * 4, NAN);
    f.rows.entropy = o.entropy.data(), f.rows.distance = o.distance.data();
    f.rows.spread = o.spread.data();
    o.marked.assign(rows * mark_columns, NAN);
    f.rows.mark_sets = 2, f.rows.mark_columns = mark_columns, f.rows.mark_mass = o.marked.data();
    f.rows.marks = marks.data(), f.rows.marks_batch = c.p.k_len;
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
  compare("output", d, rows * p.d_v, half ? 2e-2 : 1e-5 * d.spread,
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
  compare("spread", d, rows, 1e-4, [&](i64 n) { return o.spread[at(n)]; },
          [&](i64 n) {
            const double* w = right.weights.data() + n * p.k_len;
            double mass = 0, mean = 0, variance = 0;
            for (i64 j = 0; j < p.k_len; ++j) mass += w[j], mean += w[j] * static_cast<double>(j);
            if (mass == 0) return 0.0;
            mean /= mass;
            for (i64 j = 0; j < p.k_len; ++j) variance += w[j] * std::pow(static_cast<double>(j) - mean, 2);
            return variance / mass;
          });
  compare("marked", d, rows * mark_columns, 2e-5, [&](i64 n) { return o.marked[at(n)]; },
          [&](i64 n) {
            const i64 row = n / mark_columns;
            double mass = 0;
            for (i64 set = 0; set < 2; ++set)
              for (i64 j = 0; j < p.k_len; ++j)
                if (mark_of(set, row / p.q_len / p.heads, j) == n % mark_columns)
                  mass += right.weights[at(row * p.k_len + j)];
            return mass;
          });
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

// What keys receive, against the weights.
void check_measure(Drawn& d, const Answer& right) {
  const Problem& p = d.c.p;
  const Outputs o = run_forward(d, false);
  const auto at = [](i64 n) { return static_cast<std::size_t>(n); };
  const i64 heads = p.batch * p.heads;
  MeasureArguments a;
  static_cast<Problem&>(a) = p;
  a.reference = o.reference.data(), a.share = o.share.data();
  a.q_cells = std::min<i64>(p.q_len, 5), a.k_cells = std::min<i64>(p.k_len, 7);
  std::vector<float> mass(at(heads * p.k_len), NAN), map(at(heads * a.q_cells * a.k_cells), NAN);
  a.key_mass = mass.data(), a.map = map.data();
  std::vector<double> true_mass(mass.size(), 0), true_map(map.size(), 0);
  for (i64 n = 0; n < static_cast<i64>(right.weights.size()); ++n) {
    const i64 j = n % p.k_len, i = n / p.k_len % p.q_len, h = n / p.k_len / p.q_len;
    true_mass[at(h * p.k_len + j)] += right.weights[at(n)];
    true_map[at((h * a.q_cells + i * a.q_cells / p.q_len) * a.k_cells + j * a.k_cells / p.k_len)] +=
        right.weights[at(n)];
  }
  if (measure(a) != Status::ok) ++failures, std::printf("WRONG status of measure\n");
  const double tolerance = 3e-5 * d.spread;
  compare("key mass", d, heads * p.k_len, tolerance, [&](i64 n) { return mass[at(n)]; },
          [&](i64 n) { return true_mass[at(n)]; });
  compare("map", d, static_cast<i64>(map.size()), tolerance, [&](i64 n) { return map[at(n)]; },
          [&](i64 n) { return true_map[at(n)]; });
  a.map = nullptr;
  measure(a);
  compare("key mass alone", d, heads * p.k_len, tolerance, [&](i64 n) { return mass[at(n)]; },
          [&](i64 n) { return true_mass[at(n)]; });
}

struct Gradients {
  Tensor q, k, v;
  std::vector<float> sinks, bias;
};

Gradients run_backward(Drawn& d, const Outputs& o) {
  Case& c = d.c;
  Gradients g;
  g.q = c.q, g.k = c.k, g.v = c.v;
  g.q.make(NAN), g.k.make(NAN), g.v.make(NAN);
  BackwardArguments a;
  static_cast<Problem&>(a) = c.p;
  Tensor out = o.out;
  a.out = out.input(), a.d_out = c.d_out.input(), a.lse = o.lse.data();
  if (!c.d_lse.empty()) a.d_lse = c.d_lse.data();
  a.grad_q = g.q.output(), a.grad_k = g.k.output(), a.grad_v = g.v.output();
  g.sinks.assign(static_cast<std::size_t>(c.p.heads), NAN);
  if (c.p.sinks) a.d_sinks = g.sinks.data();
  if (c.p.bias.data && c.p.bias.column == 1) {
    g.bias.assign(static_cast<std::size_t>(c.p.batch * c.p.heads * c.p.q_len * c.p.k_len), 0);
    a.d_bias = g.bias.data();
    a.d_bias_batch = c.p.bias.batch, a.d_bias_head = c.p.bias.head, a.d_bias_row = c.p.bias.row;
  }
  std::int32_t not_finite = 0;
  a.not_finite = &not_finite;
  if (backward(a) != Status::ok || not_finite) ++failures, std::printf("WRONG status of backward\n");
  return g;
}

void check_backward(Drawn& d, const Answer& right) {
  const Problem& p = d.c.p;
  const Outputs o = run_forward(d, false);
  const Gradients g = run_backward(d, o);
  const auto at = [](i64 n) { return static_cast<std::size_t>(n); };
  // Rounding of bf16 outputs shows in delta, and so in every score's gradient.
  const double tolerance = p.type == Type::bf16 ? 8e-2 * std::pow(d.spread, 1.5) : 5e-5 * d.spread;
  const auto same = [&](const char* what, const Tensor& mine, const std::vector<double>& truth) {
    const i64 columns = mine.columns, rows = mine.rows, heads = mine.heads;
    compare(what, d, mine.batch * heads * rows * columns, tolerance,
            [&](i64 n) {
              const i64 row = n / columns;
              return mine.get(row / rows / heads, row / rows % heads, row % rows, n % columns);
            },
            [&](i64 n) { return truth[at(n)]; });
  };
  same("d_q", g.q, right.d_q), same("d_k", g.k, right.d_k), same("d_v", g.v, right.d_v);
  if (p.sinks)
    compare("d_sinks", d, p.heads, 4 * tolerance, [&](i64 n) { return g.sinks[at(n)]; },
            [&](i64 n) { return right.d_sinks[at(n)]; });
  if (g.bias.empty()) return;
  std::vector<double> truth(g.bias.size(), 0);
  for (i64 n = 0; n < static_cast<i64>(right.d_bias.size()); ++n) {
    const i64 row = n / p.k_len, i = row % p.q_len, h = row / p.q_len % p.heads, b = row / p.q_len / p.heads;
    truth[at(b * p.bias.batch + h * p.bias.head + i * p.bias.row + n % p.k_len)] += right.d_bias[at(n)];
  }
  compare("d_bias", d, static_cast<i64>(truth.size()), 4 * tolerance, [&](i64 n) { return g.bias[at(n)]; },
          [&](i64 n) { return truth[at(n)]; });
}

}  // namespace

int main(int count, char** words) {
  const int cases = count > 1 ? std::atoi(words[1]) : 60;
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
      const bool gradients = i % 2 == 0;
      const Answer right = d.c.answer(gradients);
      check_forward(d, right, i % 2);
      if (gradients) check_backward(d, right);
      if (i % 4 == 1) check_measure(d, right);
      if (failures > 20) break;
    }
    std::printf("%s: %d cases, %d wrong\n", list[n].name, cases, failures - before);
    if (failures > 20) break;
  }
  return failures != 0;
}
