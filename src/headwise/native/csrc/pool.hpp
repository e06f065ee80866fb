// Threads that share the pieces of a call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention.hpp"

namespace headwise::pool {

// Does one piece; false: there was no memory for it.
using Work = bool (*)(void* context, std::int64_t piece);

// Does `pieces` pieces, each once, in rising order of their start, on the calling thread and (where `operations`,
// the call's floating point operations, are worth waking them) on helpers. A piece may wait for one before it.
// The helpers serve one call at a time: a call that comes meanwhile from another thread does its own work.
Status run(std::int64_t pieces, double operations, Work work, void* context, const volatile int* stop);

// Memory for a call's pieces to share, set to 0; nullptr: there is none. Given back by `release`.
void* reserve(std::size_t bytes);
void release(void* memory);

// Whether the call that this thread works for has been ended early: what waits for another piece must give up.
bool cancelled();

// Sums that several pieces add to are added in a fixed order, whatever thread is first: piece `turn` waits until
// `counter` says that it is its turn, and passes it on. False: the call has been ended, don't wait.
bool wait_turn(const std::int32_t* counter, std::int32_t turn);
void pass_turn(std::int32_t* counter);

// Memory of the calling thread, aligned to 64 bytes, of `bytes` or more, kept for its next piece; what the
// thread was given before is no longer valid. nullptr: there is none.
void* scratch(std::size_t bytes);

}  // namespace headwise::pool
