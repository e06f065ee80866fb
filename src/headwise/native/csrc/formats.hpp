// The three ways in which q, k and v are read.
#pragma once

#include "buffer.hpp"
#include "layout.hpp"
#include "products.hpp"

namespace headwise::HEADWISE_ISA_NAME {

// Float32, in place.
struct Floats {
  using Entry = Single;
  using Pack = Raw;
  static constexpr int size = 4;          // bytes of a number in memory
  static constexpr int together = 1;      // numbers of one column that one entry of a product holds
  static constexpr bool in_place = true;  // keys are read where they are
};

// bfloat16 made float32 in blocks: for CPUs without its dot product.
struct Upcasts {
  using Entry = Single;
  using Pack = Upcast;
  static constexpr int size = 2;
  static constexpr int together = 1;
  static constexpr bool in_place = false;
};

#if defined(__AVX512BF16__)
// bfloat16 in pairs, for the dot product that adds two products to a float32. d_k is even.
struct Pairs {
  using Entry = Pair;
  using Pack = Raw;
  static constexpr int size = 2;
  static constexpr int together = 2;
  static constexpr bool in_place = true;
};
#endif

// Keys (or values), made readable as the broadcast side of a product: where they are, or in `room`.
template <class Format>
HEADWISE_INLINE const void* readable_rows(const char* rows, i64 step, i64 count, i64 columns, float* room, i64& a_step) {
  if constexpr (Format::in_place) {
    a_step = step;
    return rows;
  } else {
    widen<typename Format::Pack>(rows, step, count, columns, columns, room);
    a_step = columns * 4;
    return room;
  }
}

// Values (or keys), made readable as the vector side of a product over rows: where they are if vectors fit, or
// in `room`, `padded(columns)` wide.
template <class Format>
HEADWISE_INLINE const void* readable_vectors(const char* rows, i64 step, i64 count, i64 columns, float* room,
                                             i64& b_step) {
  b_step = padded(columns) * 4;
#if defined(__AVX512BF16__)
  if constexpr (Format::together == 2) {
    interleave(rows, step, count, columns, padded(columns), room);
    return room;
  }
#endif
  if (Format::in_place && columns % lanes == 0) {
    b_step = step;
    return rows;
  }
  widen<typename Format::Pack>(rows, step, count, columns, padded(columns), room);
  return room;
}

}  // namespace headwise::HEADWISE_ISA_NAME
