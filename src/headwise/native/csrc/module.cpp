// The Python module `headwise._native`: what was built, and the kernels of attention.hpp over addresses.
//
// Tensors come as tuples of an address and strides, which kernels/native.py takes from tensors that it has
// checked and keeps alive: reading a tensor from here would cost more than a small call computes.

#include <nanobind/nanobind.h>

#include "attention.hpp"
#include "interrupt.hpp"
#include "reader.hpp"

namespace nb = nanobind;

namespace headwise {
namespace {

// [(instruction set, whether this CPU has it)], the best last.
nb::list built() {
  const Build* list = nullptr;
  const int count = builds(&list);
  nb::list found;
  for (int i = 0; i < count; ++i) found.append(nb::make_tuple(list[i].name, list[i].supported));
  return found;
}

// Runs a call without the interpreter's lock. `patient` calls are too short to look for Ctrl-C.
template <typename Arguments>
int run(Status (*call)(const Arguments&), Arguments& arguments, bool patient) {
  nb::gil_scoped_release unlocked;
  Interruptible watch(!patient);
  arguments.stop = watch.flag();
  return static_cast<int>(call(arguments));
}

int forward_of(nb::tuple problem, nb::tuple out, nb::object rows, bool patient) {
  ForwardArguments arguments;
  std::int32_t not_finite = 0;
  read_problem(problem, arguments);
  Reader given(out);
  arguments.out = given.output();
  arguments.lse = given.pointer<float>();
  given.done();
  arguments.not_finite = &not_finite;
  if (!rows.is_none()) read_rows(nb::cast<nb::tuple>(rows), arguments.rows);
  const int status = run<ForwardArguments>(forward, arguments, patient);
  return status ? status : not_finite * not_finite_status;
}

int backward_of(nb::tuple problem, nb::tuple given_by_forward, nb::tuple grads, bool patient) {
  BackwardArguments arguments;
  std::int32_t not_finite = 0;
  read_problem(problem, arguments);
  Reader given(given_by_forward);
  arguments.out = given.input();
  arguments.lse = given.pointer<const float>();
  arguments.d_out = given.input();
  arguments.d_lse = given.pointer<const float>();
  given.done();
  Reader wanted(grads);
  arguments.grad_q = wanted.output();
  arguments.grad_k = wanted.output();
  arguments.grad_v = wanted.output();
  arguments.d_sinks = wanted.pointer<float>();
  arguments.d_bias = wanted.pointer<float>();
  arguments.d_bias_batch = wanted.integer();
  arguments.d_bias_head = wanted.integer();
  arguments.d_bias_row = wanted.integer();
  wanted.done();
  arguments.not_finite = &not_finite;
  const int status = run<BackwardArguments>(backward, arguments, patient);
  return status ? status : not_finite * not_finite_status;
}

int measure_of(nb::tuple problem, nb::tuple wanted, bool patient) {
  MeasureArguments arguments;
  read_problem(problem, arguments);
  Reader given(wanted);
  arguments.reference = given.pointer<const float>();
  arguments.share = given.pointer<const float>();
  arguments.key_mass = given.pointer<float>();
  arguments.map = given.pointer<float>();
  arguments.q_cells = given.integer();
  arguments.k_cells = given.integer();
  given.done();
  return run<MeasureArguments>(measure, arguments, patient);
}

// (the Status's number, the error)
nb::tuple check_rows_of(nb::tuple problem, nb::tuple given_by_forward, bool patient) {
  CheckArguments arguments;
  float error = 0;
  read_problem(problem, arguments);
  Reader given(given_by_forward);
  arguments.lse = given.pointer<const float>();
  arguments.rows = given.integer();
  given.done();
  arguments.error = &error;
  const int status = run<CheckArguments>(check_rows, arguments, patient);
  return nb::make_tuple(status, error);
}

double multiply_add_of(int type) {
  nb::gil_scoped_release unlocked;
  return multiply_add(static_cast<Type>(type));
}

std::uint32_t read_memory_of(std::uintptr_t address, std::int64_t count) {
  nb::gil_scoped_release unlocked;
  return read_memory(reinterpret_cast<const void*>(address), count);
}

}  // namespace
}  // namespace headwise

NB_MODULE(_native, m) {
  headwise::Interruptible::on_this_thread();
  m.attr("ARGUMENTS") = headwise::arguments_version;
  m.attr("NOT_FINITE") = headwise::not_finite_status;
  m.attr("INTERRUPTED") = static_cast<int>(headwise::Status::interrupted);
  m.attr("NO_MEMORY") = static_cast<int>(headwise::Status::no_memory);
  m.def("forward", &headwise::forward_of, nb::arg("problem"), nb::arg("out"), nb::arg("rows").none(),
        nb::arg("patient"));
  m.def("backward", &headwise::backward_of);
  m.def("measure", &headwise::measure_of);
  m.def("check_rows", &headwise::check_rows_of);
  m.def("multiply_add", &headwise::multiply_add_of);
  m.def("read_memory", &headwise::read_memory_of);
  m.def("builds", &headwise::built);
  m.def("isa", &headwise::isa);
  m.def("use_isa", &headwise::use_isa);
  m.def("features", &headwise::features);
  m.def("compiler", &headwise::compiler);
  m.def("threads", &headwise::threads);
  m.def("set_threads", &headwise::set_threads);
}
