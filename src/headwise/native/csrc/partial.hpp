// Rows whose keys several pieces share: what each found, and how it is joined.
#pragma once

#include "buffer.hpp"
#include "marks.hpp"
#include "picks.hpp"

namespace headwise::HEADWISE_ISA_NAME {

// All that a piece knows of its rows.
struct State {
  Softmax* softmax;
  Seen* seen;  // nullptr: not looked at
  Picks picks;
  Marks marks;
  float* outputs;  // [item_rows][wide], relative to softmax's top
};

// Multiplies a state's sums so that they are relative to `top`.
inline void bring_to(State& state, const RowStatistics& ask, const float* top, int rows, i64 wide) {
  for (int i = 0; i < rows; ++i) {
    Softmax& s = *state.softmax;
    const float shift = s.top[i] == -__builtin_inff() ? 0 : s.top[i] - top[i];  // at most 0
    const float alpha = exp2(splat(shift))[0];
    s.sum[i] *= alpha, s.rounded[i] *= alpha;
    if (state.seen) {
      state.seen->entropy[i] = state.seen->entropy[i] * alpha + shift * s.sum[i];
      state.seen->distance[i] *= alpha;
      state.seen->first[i] *= alpha;
      state.seen->second[i] *= alpha;
      for (i64 c = 0; c < ask.mark_columns; ++c) state.marks.mass[c * item_rows + i] *= alpha;
    }
    if (alpha != 1)
      for (i64 c = 0; c < wide; ++c) state.outputs[i * wide + c] *= alpha;
    s.top[i] = top[i];
  }
}

// Adds what `other` found of later keys.
inline void add_state(State& mine, State& other, const RowStatistics& ask, int rows, i64 wide) {
  alignas(64) float top[item_rows];
  for (int i = 0; i < rows; ++i) top[i] = most(mine.softmax->top[i], other.softmax->top[i]);
  bring_to(mine, ask, top, rows, wide);
  bring_to(other, ask, top, rows, wide);
  if (mine.seen) {
    for (int i = 0; i < rows; ++i) {
      mine.seen->entropy[i] += other.seen->entropy[i];
      mine.seen->distance[i] += other.seen->distance[i];
      for (i64 c = 0; c < ask.mark_columns; ++c)
        mine.marks.mass[c * item_rows + i] += other.marks.mass[c * item_rows + i];
    }
    mine.seen->add_moments(*other.seen, mine.softmax->sum, other.softmax->sum, rows);
    mine.picks.add(other.picks, ask, rows);
  }
  for (int i = 0; i < rows; ++i) {
    mine.softmax->sum[i] += other.softmax->sum[i];
    mine.softmax->rounded[i] += other.softmax->rounded[i];
  }
  for (i64 c = 0; c < rows * wide; ++c) mine.outputs[c] += other.outputs[c];
}

// Room for the states of all pieces of a call.
class Parts {
 public:
  bool reserve(const ForwardArguments& a, i64 pieces, i64 splits) {
    ask_ = &a.rows;
    splits_ = splits;
    wide_ = padded(a.d_v);
    counters_ = (pieces + 15) / 16 * 16 * 4;
    size_ = static_cast<i64>(sizeof(Softmax) + sizeof(Seen)) +
            item_rows * (4 * wide_ + 4 * ask_->offset_count + 8 * Picks::listed(*ask_) + 4 * ask_->mark_columns);
    size_ = (size_ + 63) / 64 * 64;
    memory_ = static_cast<char*>(pool::reserve(static_cast<std::size_t>(counters_ + pieces * splits * size_)));
    return memory_ != nullptr;
  }
  void release() {
    if (memory_) pool::release(memory_);
  }

  void keep(i64 number, i64 split, const State& state, int rows, i64 wide) {
    State mine = at(number, split, state.seen != nullptr);
    *mine.softmax = *state.softmax;
    if (state.seen) *mine.seen = *state.seen;
    std::memcpy(mine.outputs, state.outputs, 4 * static_cast<std::size_t>(rows * wide));
    copy_lists(mine, state);
  }

  // Whether all splits of this piece are there, of which this was the last to come.
  bool last(i64 number) {
    return __atomic_add_fetch(reinterpret_cast<std::int32_t*>(memory_) + number, 1, __ATOMIC_ACQ_REL) == splits_;
  }

  // All splits in their order, whichever came first.
  void join(i64 number, State& into, int rows, i64 wide) {
    State first = at(number, 0, into.seen != nullptr);
    for (i64 split = 1; split < splits_; ++split) {
      State other = at(number, split, into.seen != nullptr);
      add_state(first, other, *ask_, rows, wide);
    }
    *into.softmax = *first.softmax;
    if (into.seen) *into.seen = *first.seen;
    std::memcpy(into.outputs, first.outputs, 4 * static_cast<std::size_t>(rows * wide));
    copy_lists(into, first);
  }

 private:
  const RowStatistics* ask_ = nullptr;
  char* memory_ = nullptr;
  i64 splits_ = 1, wide_ = 0, counters_ = 0, size_ = 0;

  // What there are as many of as the call asks for, [n][item_rows] each.
  void copy_lists(State& to, const State& from) const {
    const auto copy = [](void* a, const void* b, i64 n) { std::memcpy(a, b, 4 * item_rows * static_cast<std::size_t>(n)); };
    copy(to.picks.offset_scores, from.picks.offset_scores, ask_->offset_count);
    copy(to.picks.top_scores, from.picks.top_scores, Picks::listed(*ask_));
    copy(to.picks.top_keys, from.picks.top_keys, Picks::listed(*ask_));
    copy(to.marks.mass, from.marks.mass, ask_->mark_columns);
  }

  State at(i64 number, i64 split, bool look) const {
    char* p = memory_ + counters_ + (number * splits_ + split) * size_;
    State s;
    s.softmax = reinterpret_cast<Softmax*>(p);
    p += sizeof(Softmax);
    s.seen = look ? reinterpret_cast<Seen*>(p) : nullptr;
    p += sizeof(Seen);
    s.outputs = reinterpret_cast<float*>(p);
    p += 4 * item_rows * wide_;
    s.picks.top_keys = reinterpret_cast<std::int32_t*>(p);
    p += 4 * item_rows * Picks::listed(*ask_);
    s.picks.top_scores = reinterpret_cast<float*>(p);
    p += 4 * item_rows * Picks::listed(*ask_);
    s.picks.offset_scores = reinterpret_cast<float*>(p);
    p += 4 * item_rows * ask_->offset_count;
    s.marks.mass = reinterpret_cast<float*>(p);
    s.marks.far = nullptr;
    return s;
  }
};

}  // namespace headwise::HEADWISE_ISA_NAME
