// Rows one at a time, pair by pair, in double: slow, and right where numbers aren't finite or are huge.
#pragma once

#include "attention.hpp"

namespace headwise {

// Writes the output, log-sum-exp and statistics of one query row. False: there was no memory.
bool careful_row(const ForwardArguments& arguments, std::int64_t batch, std::int64_t head, std::int64_t query);

}  // namespace headwise
