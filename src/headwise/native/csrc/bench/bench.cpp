// How fast, on one thread, by its CPU time: the peak of this core, and the kernels beside it.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/case.hpp"

using namespace headwise;
using namespace headwise::tests;

namespace {

double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// The most that products of this type can do on this core, in GF/s.
double peak(Type type) {
  double best = 0;
  for (int i = 0; i < 15; ++i) {
    const double start = now(), operations = multiply_add(type);
    best = std::max(best, operations / (now() - start) / 1e9);
  }
  return best;
}

// The fastest of some calls, in seconds.
template <class F>
double fastest(int repeats, const F& call) {
  double best = 1e9;
  for (int r = 0; r < repeats; ++r) {
    const double start = now();
    call();
    best = std::min(best, now() - start);
  }
  return best;
}

volatile i64 seen = 0;

// One query over many keys, 8 heads that share `kv_heads`: how much memory is read in a second.
void decode(Type type, i64 d, int repeats, i64 batch, i64 kv_heads) {
  for (const i64 keys : {2048, 8192, 32768}) {
    std::mt19937 source(1);
    Case c;
    c.p.batch = batch, c.p.heads = 8, c.p.kv_heads = kv_heads, c.p.q_len = 1, c.p.k_len = keys;
    c.p.d_k = c.p.d_v = d, c.p.scale = 1 / std::sqrt(static_cast<double>(d)), c.p.type = type;
    c.finish(source, 1, 0, false);
    ForwardArguments f;
    static_cast<Problem&>(f) = c.p;
    f.out = c.out.output(), f.lse = c.lse.data();
    const double t = fastest(repeats, [&] { forward(f); });
    const double bytes = 2.0 * static_cast<double>(batch * kv_heads * keys * d) * (type == Type::f32 ? 4 : 2);
    // The same memory, merely read.
    const double plain = fastest(repeats, [&] {
      for (const void* data : {c.k.data(), c.v.data()}) seen = seen + read_memory(data, static_cast<i64>(bytes) / 8);
    });
    std::printf("%ld x 1 query, 8 heads share %ld, %5ld keys: %8.3f ms, %5.1f GB/s (merely reading: %5.1f GB/s)\n",
                static_cast<long>(batch), static_cast<long>(kv_heads), static_cast<long>(keys),
                t * 1e3, bytes / t / 1e9, bytes / plain / 1e9);
  }
}

// What observing costs beside the output alone.
void statistics(Type type, i64 d, int repeats) {
  for (const i64 length : {128, 512, 2048})
    for (int causal = 0; causal < 2; ++causal) {
      std::mt19937 source(1);
      Case c;
      c.p.batch = 1, c.p.heads = c.p.kv_heads = 8, c.p.q_len = c.p.k_len = length;
      c.p.d_k = c.p.d_v = d, c.p.scale = 1 / std::sqrt(static_cast<double>(d)), c.p.type = type;
      if (causal) c.p.mask.band_high = 0;
      c.finish(source, 1, 0, false);
      ForwardArguments f;
      static_cast<Problem&>(f) = c.p;
      f.out = c.out.output(), f.lse = c.lse.data();
      std::vector<float> entropy(c.lse.size()), distance(entropy), most(entropy), offset(entropy), spread(entropy);
      std::vector<float> reference(entropy), share(entropy), marked(entropy);
      std::vector<std::int32_t> marks(static_cast<std::size_t>(length), -1);
      marks[0] = 0;
      std::vector<i64> key(entropy.size());
      ForwardArguments g = f;
      const i64 offsets[] = {-1};
      g.rows.entropy = entropy.data(), g.rows.distance = distance.data(), g.rows.max_weight = most.data();
      g.rows.max_key = key.data(), g.rows.offsets = offsets, g.rows.offset_count = 1;
      g.rows.offset_mass = offset.data(), g.rows.spread = spread.data();
      g.rows.mark_sets = g.rows.mark_columns = 1, g.rows.marks = marks.data(), g.rows.mark_mass = marked.data();
      g.rows.reference = reference.data(), g.rows.share = share.data();
      MeasureArguments m;
      static_cast<Problem&>(m) = c.p;
      std::vector<float> mass(static_cast<std::size_t>(8 * length)), map(8 * 64 * 64);
      m.reference = reference.data(), m.share = share.data(), m.key_mass = mass.data(), m.map = map.data(), m.q_cells = m.k_cells = 64;
      const double alone = fastest(repeats, [&] { forward(f); }), rows = fastest(repeats, [&] { forward(g); });
      const double keys = fastest(repeats, [&] { measure(m); });
      std::printf("length %4ld %s: output %8.3f ms, with statistics of rows %.3fx, and of keys %.3fx\n",
                  static_cast<long>(length), causal ? "causal" : "full  ", alone * 1e3, rows / alone,
                  (rows + keys) / alone);
    }
}

// What each option costs beside a call without options.
void options(Type type, i64 d, int repeats, i64 length) {
  std::mt19937 source(1);
  Case c;
  c.p.batch = length < 1000 ? 2 : 1, c.p.heads = c.p.kv_heads = 8, c.p.q_len = c.p.k_len = length;
  c.p.d_k = c.p.d_v = d, c.p.scale = 1 / std::sqrt(static_cast<double>(d)), c.p.type = type;
  c.finish(source, 1, 0, false);
  const Problem plain = c.p;
  std::vector<std::uint8_t> dense(static_cast<std::size_t>(length * length));
  for (auto& x : dense) x = source() % 4 != 0;
  // (The bias of long calls would fill the memory.)
  std::vector<float> bias(static_cast<std::size_t>(length < 4000 ? 8 * length * length : 0), 0.5f);
  const i64 half = length / 2;
  std::vector<i64> ids(static_cast<std::size_t>(length));
  for (i64 i = 0; i < length; ++i) ids[static_cast<std::size_t>(i)] = i / 100;
  double base[2] = {0, 0};
  Tensor d_q = c.q, d_k = c.k, d_v = c.v;
  const auto one = [&](const char* name) {
    ForwardArguments f;
    static_cast<Problem&>(f) = c.p;
    f.out = c.out.output(), f.lse = c.lse.data();
    BackwardArguments g;
    static_cast<Problem&>(g) = c.p;
    g.out = c.out.input(), g.d_out = c.d_out.input(), g.lse = c.lse.data();
    g.grad_q = d_q.output(), g.grad_k = d_k.output(), g.grad_v = d_v.output();
    const double t = fastest(repeats, [&] { forward(f); }), u = fastest(repeats, [&] { backward(g); });
    if (base[0] == 0) base[0] = t, base[1] = u;
    std::printf("length %ld, %-24s forward %8.3f ms (%.2fx), backward %8.3f ms (%.2fx)\n", static_cast<long>(length),
                name, t * 1e3, t / base[0], u * 1e3, u / base[1]);
    c.p = plain;
  };
  one("no option");
  c.p.mask.dense = dense.data(), c.p.mask.dense_row = length, c.p.mask.dense_column = 1;
  one("dense mask");
  c.p.mask.dense = dense.data(), c.p.mask.dense_column = 1;
  one("dense mask of keys");
  if (!bias.empty()) c.p.bias.data = bias.data(), c.p.bias.head = length * length, c.p.bias.row = length, c.p.bias.column = 1;
  one("bias of every head");
  c.p.dropout = {0.1, 7, 0};
  one("dropout");
  c.p.softcap = 30;
  one("softcap");
  c.p.mask.key_end = &half;
  one("half of the keys");
  c.p.mask.band_low = -127, c.p.mask.band_high = 0;
  one("window of 128");
  c.p.mask.band_low = -511, c.p.mask.band_high = 0;
  one("window of 512");
  c.p.mask.q_ids = c.p.mask.k_ids = ids.data();
  one("documents of 100");
}

}  // namespace

// bench [forward|backward|decode|statistics|options] [f32|bf16] [repeats] [d] [only this length] [between]
int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "forward";
  const Type type = count > 2 && std::string(words[2]) == "bf16" ? Type::bf16 : Type::f32;
  const int repeats = count > 3 ? std::atoi(words[3]) : 7;
  const i64 only = count > 5 ? std::atoi(words[5]) : 0;
  const i64 d = count > 4 ? std::atoi(words[4]) : 64;
  const bool between = count > 6;  // rows of all heads side by side, as a projection leaves them
  set_threads(1);
  const double top = peak(type);
  std::printf("%s, %s, peak of this core %.0f GF/s\n", isa(), features(), top);
  if (what == "decode" || what == "statistics" || what == "options") {
    if (what == "decode")
      decode(type, d, repeats, 8, 2), decode(type, d, repeats, 1, 8);
    else if (what == "options")
      options(type, d, repeats, only ? only : 512);
    else
      statistics(type, d, repeats);
    return 0;
  }
  const i64 shapes[][2] = {{8, 128}, {2, 512}, {1, 2048}, {1, 8192}};
  for (const auto& shape : shapes)
    for (int causal = 0; causal < 2; ++causal) {
      if (only ? shape[1] != only : shape[1] == 8192) continue;
      std::mt19937 source(1);
      Case c;
      c.p.batch = shape[0], c.p.heads = c.p.kv_heads = 8, c.p.q_len = c.p.k_len = shape[1];
      c.p.d_k = c.p.d_v = d, c.p.scale = 1 / std::sqrt(static_cast<double>(d)), c.p.type = type;
      if (causal) c.p.mask.band_high = 0;
      c.finish(source, 1, 0, between);
      ForwardArguments f;
      static_cast<Problem&>(f) = c.p;
      f.out = c.out.output(), f.lse = c.lse.data();
      BackwardArguments g;
      static_cast<Problem&>(g) = c.p;
      Tensor d_q = c.q, d_k = c.k, d_v = c.v;
      g.out = c.out.input(), g.d_out = c.d_out.input(), g.lse = c.lse.data();
      g.grad_q = d_q.output(), g.grad_k = d_k.output(), g.grad_v = d_v.output();
      forward(f);
      std::vector<double> times;
      for (int r = 0; r < repeats; ++r) {
        const double start = now();
        if (what == "backward")
          backward(g);
        else
          forward(f);
        times.push_back(now() - start);
      }
      std::sort(times.begin(), times.end());
      const double n = static_cast<double>(shape[1]);
      const double pairs = causal ? n * (n + 1) / 2 : n * n;
      const double work = (what == "backward" ? 10 : 4) * static_cast<double>(shape[0] * 8 * d) * pairs / 1e9;
      std::printf("[%ld, 8, %5ld, %ld] %s: min %8.3f ms, %4.0f GF/s (%2.0f %%), median %4.0f GF/s\n",
                  static_cast<long>(shape[0]), static_cast<long>(shape[1]), static_cast<long>(d),
                  causal ? "causal" : "full  ", times[0] * 1e3, work / times[0], 100 * work / times[0] / top,
                  work / times[times.size() / 2]);
    }
}
