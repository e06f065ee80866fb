// The border of headwise's native kernels: plain structs of pointers, sizes and options.
//
// Nothing here knows of PyTorch or Python, and nothing is validated: the caller says the truth about sizes
// and strides. Every size may be 0. Strides count elements and may be 0 (one row that all share) or negative.
//
// What is computed, for query i and key j of batch entry b and query head h:
//
//     s_ij = scale * q_i . k_j
//     s_ij = softcap * tanh(s_ij / softcap)          if softcap > 0
//     s_ij = s_ij + bias_ij                          if bias.data
//     s_ij = -inf                                    where the mask does not allow
//     lse_i = log(sum_j exp(s_ij) + exp(sink_h))     the sink's term only if sinks
//     P_ij = exp(s_ij - lse_i)                       0 in a row that may attend to nothing
//     out_i = sum_j dropout(P)_ij v_j
//
// Query head h reads key/value head h / (heads / kv_heads). Results do not depend on the number of threads.
#pragma once

#include <cstdint>

namespace headwise {

enum class Type : std::int32_t { f32 = 0, bf16 = 1 };

constexpr std::int64_t unbounded_low = INT64_MIN;
constexpr std::int64_t unbounded_high = INT64_MAX;

// A tensor [batch, heads, rows, columns]. Columns lie side by side (stride 1) unless stated otherwise.
struct Input {
  const void* data = nullptr;
  std::int64_t batch = 0, head = 0, row = 0;  // strides
};

struct Output {
  void* data = nullptr;
  std::int64_t batch = 0, head = 0, row = 0;  // strides
};

// Who may attend to whom. All parts that are given must allow, where `band` and `prefix` are one part:
//
//     (band_low <= j - i <= band_high  or  j < prefix[b])  and  key_begin[b] <= j < key_end[b]
//     and  j in one of the ranges of row i  and  q_ids[b, i] == k_ids[b, j] >= 0  and  dense[b, h, i, j]
//
// i and j are indices of the call: causal with queries aligned at the end of the keys is
// band_high = k_len - q_len; a window adds band_low. Without a band `prefix` has nothing to add to.
struct Mask {
  std::int64_t band_low = unbounded_low, band_high = unbounded_high;
  const std::int64_t* prefix = nullptr;
  std::int64_t prefix_batch = 0;  // stride; 0: one for all
  const std::int64_t* key_begin = nullptr;
  std::int64_t key_begin_batch = 0;
  const std::int64_t* key_end = nullptr;
  std::int64_t key_end_batch = 0;
  // int32 [batch, head, row, range_count, 2], the last two dimensions contiguous: a row's keys are those in
  // [first, last) of any of its ranges (1 or 2, in rising order, that don't overlap; first >= last is empty).
  const std::int32_t* ranges = nullptr;
  std::int64_t range_batch = 0, range_head = 0, range_row = 0;
  std::int32_t range_count = 0;
  const std::int64_t* q_ids = nullptr;
  std::int64_t q_ids_batch = 0;
  const std::int64_t* k_ids = nullptr;
  std::int64_t k_ids_batch = 0;
  const std::uint8_t* dense = nullptr;  // 0 or 1
  std::int64_t dense_batch = 0, dense_head = 0, dense_row = 0, dense_column = 0;
};

// Numbers added to scores, [batch, heads, q_len, k_len] by strides (any, 0 where it is broadcast).
// -inf masks.
struct Bias {
  const void* data = nullptr;
  Type type = Type::f32;
  std::int64_t batch = 0, head = 0, row = 0, column = 0;
};

// The weight of (b, h, i, j) is dropped by headwise's counting hash of (seed, batch_start + b, h, i, j); see
// src/headwise/kernels/dropout.py, which drops the same ones.
struct Dropout {
  double rate = 0;
  std::int64_t seed = 0;
  std::int64_t batch_start = 0;
};

// What every call is told.
struct Problem {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, q_len = 0, k_len = 0, d_k = 0, d_v = 0;
  Type type = Type::f32;  // of q, k, v, out and their gradients
  double scale = 1;
  double softcap = 0;
  Input q, k, v;
  Mask mask;
  Bias bias;
  const float* sinks = nullptr;  // [heads]
  Dropout dropout;
  // If given: looked at from time to time; other than 0 ends the call early, with Status::interrupted.
  const volatile int* stop = nullptr;
};

enum class Status : std::int32_t { ok = 0, interrupted = 1, no_memory = 2 };

// What is observed while the output is computed; nullptr: not asked for. All are [batch, heads, q_len],
// contiguous. Weights are those before dropout. A row that may attend to nothing: 0, and key -1.
struct RowStatistics {
  float* entropy = nullptr;            // -sum_j P_ij log P_ij, nats
  float* distance = nullptr;           // sum_j P_ij |i + q_minus_k - j|
  float* spread = nullptr;             // sum_j P_ij (j - m_i)^2 / sum_j P_ij, where m_i = sum_j P_ij j / sum_j P_ij
  std::int64_t q_minus_k = 0;          // position of query 0 minus position of key 0
  float* max_weight = nullptr;         // max_j P_ij; max_key comes with it
  std::int64_t* max_key = nullptr;     // the first j of that weight
  const std::int64_t* offsets = nullptr;  // [offset_count]: keys at j = i + q_minus_k + offset
  std::int32_t offset_count = 0;
  float* offset_mass = nullptr;        // [offset_count, batch, heads, q_len]: their weight
  std::int32_t top_count = 0;          // the heaviest keys, [batch, heads, q_len, top_count], heaviest first
  std::int64_t* top_keys = nullptr;    // -1 where there are no more
  float* top_weights = nullptr;        // 0 there
  // Sums of weights over marked keys, [batch, heads, q_len, mark_columns]. marks [mark_sets, batch, k_len]: the
  // column to which a key's weight is added, -1: none; a key has one mark in each set.
  std::int32_t mark_sets = 0, mark_columns = 0;
  const std::int32_t* marks = nullptr;
  std::int64_t marks_batch = 0;        // stride; 0: one for all
  float* mark_mass = nullptr;
  // With them weights can be made once more, as exact at large scores as at small ones, where exp(s - lse) would
  // show the rounding of lse: P_ij = exp2(s_ij log2(e) - reference_i) share_i. A row whose scores are too large for
  // that (beyond about 1e30) has a share of NaN.
  float* reference = nullptr;
  float* share = nullptr;

  // [k_len]. Inlined always: every instruction set's build has it, and the linker would keep one of them.
  __attribute__((always_inline)) const std::int32_t* marks_of(const Problem& p, std::int64_t set,
                                                              std::int64_t b) const {
    return marks + set * (marks_batch ? p.batch : 1) * p.k_len + b * marks_batch;
  }
};

struct ForwardArguments : Problem {
  Output out;            // [batch, heads, q_len, d_v]
  float* lse = nullptr;  // [batch, heads, q_len], contiguous; always written
  // Where given: set to 1 if any number of out is not finite, or any of lse but for -inf. (Never set to 0.) Then the
  // rows in which such numbers may lie hold anything, and the caller has all of it computed some other way.
  std::int32_t* not_finite = nullptr;
  RowStatistics rows;
};

struct BackwardArguments : Problem {
  Input out;                     // what forward returned
  const float* lse = nullptr;    // what forward returned
  Input d_out;                   // the gradient of out, of `type`
  const float* d_lse = nullptr;  // [batch, heads, q_len], contiguous; nullptr: 0
  Output grad_q, grad_k, grad_v;  // of `type`; every entry is written. All three nullptr: none is wanted.
  float* d_sinks = nullptr;      // [heads]; nullptr: not wanted
  // float32, summed over what has stride 0: batch, head, row. Its columns lie side by side and are not
  // broadcast (sum over them yourself). The caller has filled it with 0. nullptr: not wanted.
  float* d_bias = nullptr;
  std::int64_t d_bias_batch = 0, d_bias_head = 0, d_bias_row = 0;
  // Where given: set to 1 if an input that was read is not finite, or so large that a product or a rounded
  // log-sum-exp may not be right. (What no row attends to isn't read.) Then gradients hold anything, and the caller has them computed some other way.
  std::int32_t* not_finite = nullptr;
};

// One more half-pass, over finished rows: what keys receive.
struct MeasureArguments : Problem {     // v is not looked at; dropout has no part in it
  const float* reference = nullptr;     // what forward returned, as its share
  const float* share = nullptr;
  float* key_mass = nullptr;            // [batch, heads, k_len]: sum_i P_ij
  float* map = nullptr;                 // [batch, heads, q_cells, k_cells]: the sum of P over each cell;
  std::int64_t q_cells = 0, k_cells = 0;  // index x of n lies in cell floor(x cells / n); cells <= n
};

// How far rows of exp(s_ij - lse_i) (and the sink's) are from 1, at most, in `rows` rows from the first of all heads
// to the last. Scores are made one by one in double, and not as the other functions make theirs. A row that
// disagrees about whether there is anything to attend to: infinity.
struct CheckArguments : Problem {  // v is not looked at; dropout has no part in it
  const float* lse = nullptr;      // what forward returned
  std::int64_t rows = 0;
  float* error = nullptr;          // one number
};

Status forward(const ForwardArguments& arguments);
Status backward(const BackwardArguments& arguments);
Status measure(const MeasureArguments& arguments);
Status check_rows(const CheckArguments& arguments);

// What the kernels are measured against: the most that this CPU does, on as many threads as a call may use.

// Multiplies and adds numbers in registers for a few milliseconds at most, by the instruction that products of this
// type are made of; returns how many operations that were, 2 for each product, the same number each time.
double multiply_add(Type type);
// Merely reads `count` numbers of 32 bits that lie side by side; their sum modulo 2^32 is the proof.
std::uint32_t read_memory(const void* data, std::int64_t count);

// How many threads a call may use (at least 1): the calling one and helpers that sleep between calls.
void set_threads(int count);
int threads();

// Instruction sets: which were built, which this CPU offers and which is used.
struct Build {
  const char* name;     // "baseline" (SSE2, or NEON), "avx2", "avx512", "avx512bf16"
  bool supported;       // by this CPU
};
int builds(const Build** list);   // how many; best last
const char* isa();                // the one in use: the best supported, or the environment's HEADWISE_ISA
bool use_isa(const char* name);   // false, and nothing changes, if it isn't built or not supported
const char* features();           // what the CPU offers, in words, e.g. "avx2 fma avx512f ... avx512bf16"
const char* compiler();           // what built this

// Some calls in flight on other threads may still use what was set before `set_threads` and `use_isa`.

}  // namespace headwise
