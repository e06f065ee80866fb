// What random cases don't reach: threads, forks, calls at once, early ends, masked NaN, sizes of 0 and very many.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "draw.hpp"

using namespace headwise;
using namespace headwise::tests;

namespace {

int failures = 0;

void expect(bool right, const char* what) {
  if (right) return;
  ++failures;
  std::printf("WRONG: %s\n", what);
}

// All that a call gives, in one row of numbers.
std::vector<double> everything(Case& c, bool gradients) {
  const auto rows = static_cast<std::size_t>(c.p.batch * c.p.heads * c.p.q_len);
  std::vector<float> entropy(rows), distance(rows), most(rows), spread(rows), marked(rows * 2), reference(rows), share(rows);
  std::vector<std::int32_t> marks;
  for (i64 j = 0; j < c.p.k_len; ++j) marks.push_back(static_cast<std::int32_t>(j % 3) - 1);
  std::vector<i64> key(rows), top(rows * 3);
  std::vector<float> top_weights(rows * 3);
  ForwardArguments f;
  static_cast<Problem&>(f) = c.p;
  c.out.make(0), c.lse.assign(rows, 0);
  f.out = c.out.output(), f.lse = c.lse.data();
  f.rows.entropy = entropy.data(), f.rows.distance = distance.data(), f.rows.max_weight = most.data();
  f.rows.max_key = key.data(), f.rows.top_count = 3, f.rows.top_keys = top.data();
  f.rows.top_weights = top_weights.data();
  f.rows.spread = spread.data(), f.rows.reference = reference.data(), f.rows.share = share.data();
  f.rows.mark_sets = 1, f.rows.mark_columns = 2, f.rows.marks = marks.data(), f.rows.mark_mass = marked.data();
  expect(forward(f) == Status::ok, "forward's status");
  std::vector<double> all(c.out.f.begin(), c.out.f.end());
  all.insert(all.end(), c.out.h.begin(), c.out.h.end());
  for (const auto* part : {&c.lse, &entropy, &distance, &most, &top_weights, &spread, &marked})
    all.insert(all.end(), part->begin(), part->end());
  all.insert(all.end(), key.begin(), key.end());
  all.insert(all.end(), top.begin(), top.end());
  MeasureArguments m;
  static_cast<Problem&>(m) = c.p;
  m.reference = reference.data(), m.share = share.data(), m.q_cells = std::min<i64>(9, c.p.q_len), m.k_cells = std::min<i64>(9, c.p.k_len);
  std::vector<float> mass(static_cast<std::size_t>(c.p.batch * c.p.heads * c.p.k_len));
  std::vector<float> map(static_cast<std::size_t>(c.p.batch * c.p.heads * m.q_cells * m.k_cells));
  m.key_mass = mass.data(), m.map = map.data();
  expect(measure(m) == Status::ok, "measure's status");
  all.insert(all.end(), mass.begin(), mass.end());
  all.insert(all.end(), map.begin(), map.end());
  if (!gradients) return all;
  Tensor q = c.q, k = c.k, v = c.v;
  q.make(0), k.make(0), v.make(0);
  BackwardArguments b;
  static_cast<Problem&>(b) = c.p;
  b.out = c.out.input(), b.d_out = c.d_out.input(), b.lse = c.lse.data();
  b.grad_q = q.output(), b.grad_k = k.output(), b.grad_v = v.output();
  std::vector<float> bias(static_cast<std::size_t>(c.p.batch * c.p.heads * c.p.q_len * c.p.k_len), 0.0f);
  if (c.p.bias.data && c.p.bias.column == 1) {
    b.d_bias = bias.data();
    b.d_bias_batch = c.p.bias.batch, b.d_bias_head = c.p.bias.head, b.d_bias_row = c.p.bias.row;
  }
  expect(backward(b) == Status::ok, "backward's status");
  for (const Tensor* t : {&q, &k, &v}) {
    all.insert(all.end(), t->f.begin(), t->f.end());
    all.insert(all.end(), t->h.begin(), t->h.end());
  }
  all.insert(all.end(), bias.begin(), bias.end());
  return all;
}

bool same(const std::vector<double>& x, const std::vector<double>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), 8 * x.size()) == 0;
}

Case plain(Type type, i64 batch, i64 heads, i64 kv_heads, i64 q_len, i64 k_len, i64 d_k, i64 d_v) {
  Case c;
  std::mt19937 source(5);
  c.p.type = type, c.p.batch = batch, c.p.heads = heads, c.p.kv_heads = kv_heads, c.p.q_len = q_len;
  c.p.k_len = k_len, c.p.d_k = d_k, c.p.d_v = d_v, c.p.scale = 0.3;
  c.finish(source, 1, 0, false);
  return c;
}

// Bit for bit the same with any number of threads.
void check_threads() {
  for (unsigned seed = 0; seed < 12; ++seed) {
    Drawn d(77000 + seed);
    set_threads(1);
    const std::vector<double> one = everything(d.c, true);
    for (const int n : {2, 3, 7}) {
      set_threads(n);
      for (int again = 0; again < 2; ++again)
        expect(same(one, everything(d.c, true)), ("other numbers with threads: " + d.words()).c_str());
    }
  }
  for (const Type type : {Type::f32, Type::bf16}) {  // chunks of keys that several pieces add to
    Case c = plain(type, 1, 4, 2, 300, 1100, 24, 40);
    c.p.mask.band_high = 800;
    set_threads(1);
    const std::vector<double> one = everything(c, true);
    for (const int n : {2, 3, 7}) {
      set_threads(n);
      expect(same(one, everything(c, true)), "other numbers with threads, shared sums");
    }
  }
}

// Calls from several threads at once, each with its own answer.
void check_calls_at_once() {
  set_threads(3);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (unsigned t = 0; t < 4; ++t)
    callers.emplace_back([t, &wrong] {
      Case c = plain(t % 2 ? Type::f32 : Type::bf16, 2, 4, 2, 130 + t, 200, 32, 32);
      const std::vector<double> first = everything(c, true);
      for (int again = 0; again < 5; ++again)
        if (!same(first, everything(c, true))) ++wrong;
    });
  for (std::thread& t : callers) t.join();
  expect(wrong == 0, "calls at once disturb one another");
}

// A child of a process whose helpers are there has none of them, and makes its own.
void check_fork() {
#if defined(__SANITIZE_THREAD__)
  return;  // the sanitizer allows no threads after a fork
#endif
  set_threads(3);
  Case c = plain(Type::f32, 2, 4, 4, 200, 300, 32, 32);
  const std::vector<double> before = everything(c, true);
  const pid_t child = fork();
  if (child == 0) {
    const bool right = same(before, everything(c, true));
    _exit(right ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a call after fork");
  expect(same(before, everything(c, true)), "the parent after fork");
}

// `stop` ends a call early, from the start or while it runs.
void check_stop() {
  set_threads(2);
  Case c = plain(Type::f32, 1, 8, 8, 3000, 3000, 64, 64);
  volatile int stop = 1;
  ForwardArguments f;
  static_cast<Problem&>(f) = c.p;
  f.out = c.out.output(), f.lse = c.lse.data(), f.stop = &stop;
  expect(forward(f) == Status::interrupted, "forward doesn't look at stop");
  stop = 0;
  std::thread hand([&stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  });
  const Status status = forward(f);
  hand.join();
  expect(status == Status::interrupted, "forward isn't interrupted while it runs");
}

// Keys that are masked for some or all queries may hold anything.
void check_masked_nan() {
  for (const Type type : {Type::f32, Type::bf16})
    for (const i64 queries : {1, 40, 100}) {
      Case c = plain(type, 1, 2, 1, queries, 150, 32, 48);
      c.p.mask.band_high = 150 - queries - 20;  // the last 20 keys are nobody's, and later ones are not everybody's
      const i64 bad = 150 - 20 - (queries > 1 ? queries / 2 : 0);
      const std::vector<double> clean = everything(c, false);
      const i64 clean_rows = queries > 1 ? queries - queries / 2 : 1;  // they attend to none of these
      for (i64 j = bad; j < 150; ++j)
        for (i64 col = 0; col < 48; ++col) {
          if (col < 32) c.k.set(0, 0, j, col, j % 2 ? NAN : INFINITY);
          c.v.set(0, 0, j, col, j % 2 ? INFINITY : NAN);
        }
      const std::vector<double> dirty = everything(c, false);
      for (i64 h = 0; h < 2; ++h)
        for (i64 i = 0; i < clean_rows; ++i)
          for (i64 col = 0; col < 48; ++col) {
            const auto n = static_cast<std::size_t>(c.out.at(0, h, i, col));
            const double x = type == Type::f32 ? clean[n] : from_bf16(static_cast<std::uint16_t>(clean[n]));
            const double y = type == Type::f32 ? dirty[n] : from_bf16(static_cast<std::uint16_t>(dirty[n]));
            if (!(std::fabs(x - y) <= (type == Type::f32 ? 1e-5 : 2e-2) * (1 + std::fabs(x)))) {
              expect(false, "masked NaN leaks");
              return;
            }
          }
    }
}

// What is not masked has its effect, and only where it belongs.
void check_live_nan() {
  for (const Type type : {Type::f32, Type::bf16})
    for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
      Case c = plain(type, 1, 1, 1, 90, 90, 16, 20);
      c.p.mask.band_high = 0;
      everything(c, false);
      const Tensor clean = c.out;
      c.v.set(0, 0, 70, 3, bad);
      ForwardArguments f;
      static_cast<Problem&>(f) = c.p;
      f.out = c.out.output(), f.lse = c.lse.data();
      forward(f);
      bool right = true;
      for (i64 i = 0; i < 90; ++i)
        for (i64 col = 0; col < 20; ++col) {
          const double x = c.out.get(0, 0, i, col), y = clean.get(0, 0, i, col);
          if (i >= 70 && col == 3)
            right = right && (std::isnan(bad) ? std::isnan(x) : x == bad);
          else
            right = right && std::fabs(x - y) <= (type == Type::f32 ? 1e-5 : 2e-2) * (1 + std::fabs(y));
        }
      expect(right, "a live NaN or Inf among the values");
      std::int32_t not_finite = 0;
      ForwardArguments asking = f;
      asking.not_finite = &not_finite;
      forward(asking);
      expect(not_finite == 1, "whoever asks is told of a NaN or Inf");
      c.v.set(0, 0, 70, 3, 0.5);
      c.k.set(0, 0, 40, 2, NAN);
      forward(f);
      right = true;
      for (i64 i = 0; i < 90; ++i)
        for (i64 col = 0; col < 20; ++col)
          right = right && std::isnan(c.out.get(0, 0, i, col)) == (i >= 40) &&
                  std::isnan(c.lse[static_cast<std::size_t>(i)]) == (i >= 40);
      expect(right, "a live NaN among the keys");
    }
  // A call of nothing but NaN takes no longer than others (it would be minutes).
  Case c = plain(Type::f32, 1, 2, 2, 700, 700, 32, 32);
  for (auto& x : c.q.f) x = NAN;
  everything(c, false);
  expect(std::isnan(c.out.f[0]), "nothing but NaN");
}

void check_sizes() {
  set_threads(2);
  for (int zero = 0; zero < 7; ++zero) {
    i64 size[7] = {2, 2, 2, 5, 6, 7, 8};
    size[zero] = 0;
    if (zero == 1 || zero == 2) size[1] = size[2] = 0;
    Case c = plain(Type::f32, size[0], size[1], size[2], size[3], size[4], size[5], size[6]);
    everything(c, true);
    if (zero == 4)
      for (const float x : c.out.f) expect(x == 0, "no keys, and an output other than 0");
    if (zero == 4)
      for (const float x : c.lse) expect(x == -INFINITY, "no keys, and a log-sum-exp");
    if (zero == 5)
      for (const float x : c.lse) expect(std::fabs(x - std::log(6.0f)) < 1e-5f, "no columns: even weights");
  }
  Case many = plain(Type::f32, 4096, 16, 16, 1, 2, 2, 2);  // 65,536 heads
  const std::vector<double> one = everything(many, true);
  expect(std::isfinite(one[0]), "very many heads");
  Case tall = plain(Type::bf16, 1, 1, 1, 1, 100000, 16, 16);
  everything(tall, true);
  expect(std::fabs(tall.lse[0] - std::log(100000.0f)) < 3, "very many keys");
  Case wide = plain(Type::f32, 1, 1, 1, 3, 5, 3000, 2000);
  everything(wide, true);
  expect(std::isfinite(wide.out.f[0]), "very wide rows");
}

// Scores so large that float32 keeps only the largest, and rows of nothing but the lowest float.
void check_huge_scores() {
  Case c = plain(Type::f32, 1, 1, 1, 3, 4, 2, 2);
  std::vector<float> bias(12, -3.4028234663852886e38f);
  c.p.bias.data = bias.data(), c.p.bias.row = 4, c.p.bias.column = 1;
  everything(c, false);
  for (i64 col = 0; col < 2; ++col) {
    double mean = 0;
    for (i64 j = 0; j < 4; ++j) mean += c.v.get(0, 0, j, col) / 4;
    expect(std::fabs(c.out.get(0, 0, 1, col) - mean) < 1e-5, "a row of nothing but the lowest float");
  }
}

// What benchmarks compare with: reading stays within its numbers, and operations are counted alike each time.
void check_limits() {
  for (const i64 count : {0, 1, 15, 127, 129, 262144, 262147, 600001}) {
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
    std::uint32_t right = 0;
    for (i64 n = 0; n < count; ++n) {
      numbers[static_cast<std::size_t>(n)] = static_cast<std::int32_t>(n * 2654435761u);
      right += static_cast<std::uint32_t>(numbers[static_cast<std::size_t>(n)]);
    }
    expect(read_memory(numbers.data(), count) == right, "all numbers are read, and no other");
  }
  const double single = multiply_add(Type::f32), half = multiply_add(Type::bf16);
  expect(single > 0 && multiply_add(Type::f32) == single, "operations of float32");
  expect(half == single || half == 2 * single, "operations of bfloat16");
}

}  // namespace

int main() {
  const Build* list;
  const int built = builds(&list);
  for (int n = 0; n < built; ++n) {
    if (!use_isa(list[n].name)) continue;
    check_sizes();
    check_masked_nan();
    check_live_nan();
    check_huge_scores();
    check_limits();
    check_stop();
    check_threads();
    check_calls_at_once();
    check_fork();
    std::printf("%s: %d wrong\n", list[n].name, failures);
  }
  return failures != 0;
}
