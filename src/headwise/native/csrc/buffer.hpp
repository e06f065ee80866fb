// One thread's working memory, cut into parts.
#pragma once

#include "pool.hpp"
#include "simd.hpp"

namespace headwise::HEADWISE_ISA_NAME {

// Walks over the parts twice: first only counting, then giving addresses.
class Buffer {
 public:
  // A part of `count` T, aligned to 64 bytes. One line lies between parts, so that rows of the same place
  // in two of them don't meet in the same set of the cache.
  template <class T>
  void part(T*& at, i64 count) {
    at = start_ ? reinterpret_cast<T*>(start_ + used_) : nullptr;
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64 + 64;
  }

  // Whether there was memory; afterwards every part is asked for again, in the same order.
  bool take() {
    start_ = static_cast<char*>(pool::scratch(used_));
    used_ = 0;
    return start_ != nullptr;
  }

 private:
  char* start_ = nullptr;
  std::size_t used_ = 0;
};

HEADWISE_INLINE i64 padded(i64 columns) { return (columns + lanes - 1) / lanes * lanes; }

HEADWISE_INLINE const char* row_of(const Input& x, i64 batch, i64 head, i64 row, int size) {
  return static_cast<const char*>(x.data) + (batch * x.batch + head * x.head + row * x.row) * size;
}

HEADWISE_INLINE char* row_of(const Output& x, i64 batch, i64 head, i64 row, int size) {
  return static_cast<char*>(x.data) + (batch * x.batch + head * x.head + row * x.row) * size;
}

}  // namespace headwise::HEADWISE_ISA_NAME
