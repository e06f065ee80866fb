// What this CPU does at most, by the vectors and instructions that the kernels are made of.
#pragma once

#include "formats.hpp"
#include "pool.hpp"

namespace headwise::HEADWISE_ISA_NAME {

// One step of a chain: as many operations as one instruction of a product makes. (With single numbers the chain
// goes through the factor, so that no compiler takes the product out of the loop.)
struct SingleStep {
  static constexpr double operations = 2 * lanes;
  static HEADWISE_INLINE Vector next(Vector x, Vector a, Vector b) { return fma(x, a, b); }
};

#if defined(__AVX512BF16__)
struct PairStep {
  static constexpr double operations = 4 * lanes;
  static HEADWISE_INLINE Vector next(Vector x, Vector a, Vector b) { return Pair::add(a, b, x); }
};
using HalfStep = PairStep;
#else
using HalfStep = SingleStep;  // what bf16 is computed by, as float32
#endif

// Chains that don't wait for each other: enough to hide how long one step takes, and one register each.
constexpr int chains = 12;
constexpr i64 chain_steps = 1 << 14, chain_pieces = 32;

template <class Step>
bool run_chains(void*, i64) {
  Vector x[chains];
#pragma GCC unroll 12
  for (int i = 0; i < chains; ++i) x[i] = splat(static_cast<float>(i));
  const Vector a = splat(0.999f), b = splat(0.001f);
  for (i64 n = 0; n < chain_steps; ++n) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) x[i] = Step::next(x[i], a, b);
  }
  Vector all{};
#pragma GCC unroll 12
  for (int i = 0; i < chains; ++i) all += x[i];
  volatile float kept = sum_of(all);
  (void)kept;
  return true;
}

template <class Step>
double run_all_chains() {
  const double operations = Step::operations * chains * static_cast<double>(chain_steps * chain_pieces);
  pool::run(chain_pieces, operations, run_chains<Step>, nullptr, nullptr);
  return operations;
}

inline double multiply_add(Type type) {
  return type == Type::f32 ? run_all_chains<SingleStep>() : run_all_chains<HalfStep>();
}

// Reading, in pieces that several threads share.
struct Reading {
  static constexpr i64 of_piece = 1 << 18;  // numbers of 32 bits
  static constexpr int together = 8;        // vectors

  const std::int32_t* data;
  i64 count;
  std::uint32_t sum = 0;

  static bool piece(void* context, i64 number) {
    Reading& all = *static_cast<Reading*>(context);
    const std::int32_t* at = all.data + number * of_piece;
    const i64 count = least(of_piece, all.count - number * of_piece);
    Positive sum[together] = {};
    i64 n = 0;
    for (; n + together * lanes <= count; n += together * lanes) {
#pragma GCC unroll 8
      for (int i = 0; i < together; ++i) sum[i] += reinterpret_cast<Positive>(load_whole(at + n + i * lanes));
    }
    std::uint32_t total = 0;
#pragma GCC unroll 8
    for (int i = 0; i < together; ++i)
      for (int lane = 0; lane < lanes; ++lane) total += sum[i][lane];
    for (; n < count; ++n) {
      std::uint32_t one;
      std::memcpy(&one, at + n, 4);
      total += one;
    }
    __atomic_fetch_add(&all.sum, total, __ATOMIC_RELAXED);
    return true;
  }
};

inline std::uint32_t read_memory(const void* data, i64 count) {
  Reading reading{static_cast<const std::int32_t*>(data), count};
  pool::run((count + Reading::of_piece - 1) / Reading::of_piece, static_cast<double>(count), Reading::piece, &reading,
            nullptr);
  return reading.sum;
}

}  // namespace headwise::HEADWISE_ISA_NAME
