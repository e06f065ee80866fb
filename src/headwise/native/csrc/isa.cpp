// Everything, for one instruction set: compiled once for each, with its flags and its name.
#include "table.hpp"
#include "backward.hpp"
#include "decode.hpp"
#include "forward.hpp"
#include "limits.hpp"
#include "measure.hpp"

namespace headwise::HEADWISE_ISA_NAME {
namespace {

#if defined(__AVX512BF16__)
bool in_pairs(i64 width) { return width % 2 == 0; }
#endif

// Steps of decoding go by a way of their own. What is to be seen of them comes from the other one, and is written
// first: the output must be the same numbers with it and without.
template <class Format>
Status forward_by(const ForwardArguments& arguments) {
  Forward<Format> general(arguments);
  const bool decodes = Decode<Format>::takes(arguments);
  if (!decodes || general.looks()) {
    const Status status = general.run();
    if (!decodes || status != Status::ok) return status;
  }
  ForwardArguments unseen = arguments;
  unseen.rows = {};
  return Decode<Format>(unseen).run();
}

Status forward(const ForwardArguments& arguments) {
  if (arguments.type == Type::f32) return forward_by<Floats>(arguments);
#if defined(__AVX512BF16__)
  if (in_pairs(arguments.d_k)) return forward_by<Pairs>(arguments);
#endif
  return forward_by<Upcasts>(arguments);
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

const Table table = {forward, backward, measure, multiply_add, read_memory};

}  // namespace headwise::HEADWISE_ISA_NAME
