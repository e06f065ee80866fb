// What each instruction set's build offers to the one that chooses.
#pragma once

#include "attention.hpp"

namespace headwise {

struct Table {
  Status (*forward)(const ForwardArguments&);
  Status (*backward)(const BackwardArguments&);
  Status (*measure)(const MeasureArguments&);
  double (*multiply_add)(Type);
  std::uint32_t (*read_memory)(const void*, std::int64_t);
};

#define HEADWISE_DECLARE(name) \
  namespace name {             \
  extern const Table table;    \
  }
HEADWISE_DECLARE(baseline)
HEADWISE_DECLARE(avx2)
HEADWISE_DECLARE(avx512)
HEADWISE_DECLARE(avx512bf16)
#undef HEADWISE_DECLARE

}  // namespace headwise
