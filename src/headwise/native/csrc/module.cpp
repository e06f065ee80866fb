// The Python module `headwise._native`: what was built, and the kernels of attention.hpp over tensors.

#include <nanobind/nanobind.h>

#include "attention.hpp"

namespace nb = nanobind;

namespace {

// [(instruction set, whether this CPU has it)], the best last.
nb::list builds() {
  const headwise::Build* list = nullptr;
  const int count = headwise::builds(&list);
  nb::list found;
  for (int i = 0; i < count; ++i) found.append(nb::make_tuple(list[i].name, list[i].supported));
  return found;
}

}  // namespace

NB_MODULE(_native, m) {
  m.def("builds", &builds);
  m.def("isa", &headwise::isa);
  m.def("use_isa", &headwise::use_isa);
  m.def("features", &headwise::features);
  m.def("compiler", &headwise::compiler);
  m.def("threads", &headwise::threads);
  m.def("set_threads", &headwise::set_threads);
}
