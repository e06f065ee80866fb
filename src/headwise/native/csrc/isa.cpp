// Everything, for one instruction set: compiled once for each, with its flags and its name.
#include "table.hpp"
#include "forward.hpp"

namespace headwise::HEADWISE_ISA_NAME {
namespace {

#if defined(__AVX512BF16__)
bool pairs(const Problem& p) { return p.d_k % 2 == 0; }
#endif

Status forward(const ForwardArguments& arguments) {
  if (arguments.type == Type::f32) return Forward<Floats>(arguments).run();
#if defined(__AVX512BF16__)
  if (pairs(arguments)) return Forward<Pairs>(arguments).run();
#endif
  return Forward<Upcasts>(arguments).run();
}

Status backward(const BackwardArguments&) { return Status::no_memory; }
Status measure(const MeasureArguments&) { return Status::no_memory; }

}  // namespace

const Table table = {forward, backward, measure};

}  // namespace headwise::HEADWISE_ISA_NAME
