// Dropout by counting: whether a weight is dropped is a hash of the seed and its place, as in
// src/headwise/kernels/dropout.py, so that every kernel drops the same ones in any order.
#pragma once

#include "attention.hpp"

namespace headwise {

inline __attribute__((always_inline)) std::uint32_t scramble(std::uint64_t x) {
  x *= 0x2545F4914F6CDD1Dull;
  x ^= x >> 29;
  x *= 0x1B873593CC9E2D51ull;
  return static_cast<std::uint32_t>(x ^ (x >> 32));
}

// The part of the hash that a query row brings, `place` being its number in the whole call.
inline __attribute__((always_inline)) std::uint32_t row_hash(const Problem& p, std::int64_t batch, std::int64_t head,
                                                             std::int64_t query) {
  const std::int64_t place = ((p.dropout.batch_start + batch) * p.heads + head) * p.q_len + query;
  return scramble(static_cast<std::uint64_t>(p.dropout.seed) + static_cast<std::uint64_t>(place) * 0x9E3779B1ull);
}

inline __attribute__((always_inline)) std::uint32_t key_hash(const Problem& p, std::int64_t key) {
  return scramble(static_cast<std::uint64_t>(p.dropout.seed) * 0x85EBCA6Bull + static_cast<std::uint64_t>(key));
}

// Mixed bits are uniform; a weight is dropped below the rate's quantile.
inline __attribute__((always_inline)) std::int32_t drop_below(double rate) {
  double quantile = rate * 4294967296.0;
  quantile = __builtin_rint(quantile);
  if (quantile < 0) quantile = 0;
  if (quantile > 4294967295.0) quantile = 4294967295.0;
  return static_cast<std::int32_t>(static_cast<std::int64_t>(quantile) - 2147483648ll);
}

// T: a number or a vector of numbers, 32 bits and unsigned.
template <class T>
inline __attribute__((always_inline)) T mix(T x) {
  x = x * 0x7FEB352Du;
  x = x ^ (x >> 15);
  x = x * 0x846CA68Bu;
  return x ^ (x >> 16);
}

}  // namespace headwise
