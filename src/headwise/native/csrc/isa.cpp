// Everything, for one instruction set: compiled once for each, with its flags and its name.
#include "table.hpp"
#include "backward.hpp"
#include "forward.hpp"
#include "measure.hpp"

namespace headwise::HEADWISE_ISA_NAME {
namespace {

#if defined(__AVX512BF16__)
bool in_pairs(i64 width) { return width % 2 == 0; }
#endif

Status forward(const ForwardArguments& arguments) {
  if (arguments.type == Type::f32) return Forward<Floats>(arguments).run();
#if defined(__AVX512BF16__)
  if (in_pairs(arguments.d_k)) return Forward<Pairs>(arguments).run();
#endif
  return Forward<Upcasts>(arguments).run();
}

Status backward(const BackwardArguments& arguments) {
  if (arguments.type == Type::f32) return Backward<Floats>(arguments).run();
#if defined(__AVX512BF16__)
  if (in_pairs(arguments.d_k) && in_pairs(arguments.d_v)) return Backward<Pairs>(arguments).run();
#endif
  return Backward<Upcasts>(arguments).run();
}

Status measure(const MeasureArguments& arguments) {
  if (arguments.type == Type::f32) return Measure<Floats>(arguments).run();
#if defined(__AVX512BF16__)
  if (in_pairs(arguments.d_k)) return Measure<Pairs>(arguments).run();
#endif
  return Measure<Upcasts>(arguments).run();
}

}  // namespace

const Table table = {forward, backward, measure};

}  // namespace headwise::HEADWISE_ISA_NAME
