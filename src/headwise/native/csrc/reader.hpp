// Arguments that Python gives as flat tuples of numbers, in the order in which they are read here.
//
// kernels/native_call.py writes them in the same order.
#pragma once

#include <nanobind/nanobind.h>

#include "attention.hpp"

namespace headwise {

// Which arguments are read, and in which order: another number with every change, so that Python and a build of
// other sources don't take each other's addresses for something else.
constexpr int arguments_version = 2;

constexpr int not_finite_status = 3;  // beside the numbers of Status

class Reader {
 public:
  explicit Reader(nanobind::handle tuple) : tuple_(tuple.ptr()) {
    if (!PyTuple_CheckExact(tuple_)) throw nanobind::type_error("numbers come as a tuple");
    size_ = PyTuple_GET_SIZE(tuple_);
  }

  // Another count than that which is read would make other numbers of those that follow.
  void done() const {
    if (at_ != size_) throw nanobind::index_error("more numbers than are read");
  }

  std::int64_t integer() {
    const long long value = PyLong_AsLongLong(next());
    if (value == -1 && PyErr_Occurred()) throw nanobind::python_error();
    return value;
  }

  double real() {
    const double value = PyFloat_AsDouble(next());
    if (value == -1.0 && PyErr_Occurred()) throw nanobind::python_error();
    return value;
  }

  // An address; 0 for what isn't given.
  template <typename T>
  T* pointer() {
    return reinterpret_cast<T*>(static_cast<std::intptr_t>(integer()));
  }

  Input input() {
    Input x;
    x.data = pointer<const void>();
    x.batch = integer();
    x.head = integer();
    x.row = integer();
    return x;
  }

  Output output() {
    Output x;
    x.data = pointer<void>();
    x.batch = integer();
    x.head = integer();
    x.row = integer();
    return x;
  }

  // A tuple within the tuple, or None.
  nanobind::handle part() { return nanobind::handle(next()); }

 private:
  PyObject* next() {
    if (at_ == size_) throw nanobind::index_error("fewer numbers than are read");
    return PyTuple_GET_ITEM(tuple_, at_++);
  }

  PyObject* tuple_;
  Py_ssize_t size_ = 0, at_ = 0;
};

inline void read_mask(nanobind::handle tuple, Mask& mask) {
  Reader given(tuple);
  mask.band_low = given.integer();
  mask.band_high = given.integer();
  mask.prefix = given.pointer<const std::int64_t>();
  mask.prefix_batch = given.integer();
  mask.key_begin = given.pointer<const std::int64_t>();
  mask.key_begin_batch = given.integer();
  mask.key_end = given.pointer<const std::int64_t>();
  mask.key_end_batch = given.integer();
  mask.ranges = given.pointer<const std::int32_t>();
  mask.range_batch = given.integer();
  mask.range_head = given.integer();
  mask.range_row = given.integer();
  mask.range_count = static_cast<std::int32_t>(given.integer());
  mask.q_ids = given.pointer<const std::int64_t>();
  mask.q_ids_batch = given.integer();
  mask.k_ids = given.pointer<const std::int64_t>();
  mask.k_ids_batch = given.integer();
  mask.dense = given.pointer<const std::uint8_t>();
  mask.dense_batch = given.integer();
  mask.dense_head = given.integer();
  mask.dense_row = given.integer();
  mask.dense_column = given.integer();
  given.done();
}

inline void read_bias(nanobind::handle tuple, Bias& bias) {
  Reader given(tuple);
  bias.data = given.pointer<const void>();
  bias.type = static_cast<Type>(given.integer());
  bias.batch = given.integer();
  bias.head = given.integer();
  bias.row = given.integer();
  bias.column = given.integer();
  given.done();
}

// (type, batch, heads, kv_heads, q_len, k_len, d_k, d_v, scale, softcap, q..., k..., v..., sinks,
//  mask or None, bias or None, dropout's rate, seed, batch_start)
inline void read_problem(nanobind::handle tuple, Problem& problem) {
  Reader given(tuple);
  problem.type = static_cast<Type>(given.integer());
  problem.batch = given.integer();
  problem.heads = given.integer();
  problem.kv_heads = given.integer();
  problem.q_len = given.integer();
  problem.k_len = given.integer();
  problem.d_k = given.integer();
  problem.d_v = given.integer();
  problem.scale = given.real();
  problem.softcap = given.real();
  problem.q = given.input();
  problem.k = given.input();
  problem.v = given.input();
  problem.sinks = given.pointer<const float>();
  if (const nanobind::handle mask = given.part(); !mask.is_none()) read_mask(mask, problem.mask);
  if (const nanobind::handle bias = given.part(); !bias.is_none()) read_bias(bias, problem.bias);
  problem.dropout.rate = given.real();
  problem.dropout.seed = given.integer();
  problem.dropout.batch_start = given.integer();
  given.done();
}

inline void read_rows(nanobind::handle tuple, RowStatistics& rows) {
  Reader given(tuple);
  rows.entropy = given.pointer<float>();
  rows.distance = given.pointer<float>();
  rows.q_minus_k = given.integer();
  rows.spread = given.pointer<float>();
  rows.max_weight = given.pointer<float>();
  rows.max_key = given.pointer<std::int64_t>();
  rows.offsets = given.pointer<const std::int64_t>();
  rows.offset_count = static_cast<std::int32_t>(given.integer());
  rows.offset_mass = given.pointer<float>();
  rows.top_count = static_cast<std::int32_t>(given.integer());
  rows.top_keys = given.pointer<std::int64_t>();
  rows.top_weights = given.pointer<float>();
  rows.mark_sets = static_cast<std::int32_t>(given.integer());
  rows.mark_columns = static_cast<std::int32_t>(given.integer());
  rows.marks = given.pointer<const std::int32_t>();
  rows.marks_batch = given.integer();
  rows.mark_mass = given.pointer<float>();
  rows.reference = given.pointer<float>();
  rows.share = given.pointer<float>();
  given.done();
}

}  // namespace headwise
