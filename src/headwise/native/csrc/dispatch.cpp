// Which instruction set's build a call goes to.
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "table.hpp"

#if defined(__x86_64__) || defined(__i386__)
#define HEADWISE_X86 1
#include <cpuid.h>
#endif

namespace headwise {
namespace {

#if HEADWISE_X86
// Not __builtin_cpu_supports("avx512bf16"): older compilers don't know that name.
[[maybe_unused]] bool has_bf16_products() {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & (1u << 5));
}
[[maybe_unused]] bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
[[maybe_unused]] bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

struct Choice {
  const Table* table;
  Build build;
};

// Worst first.
const Choice choices[] = {
    {&baseline::table, {"baseline", true}},
#if HEADWISE_HAVE_AVX2
    {&avx2::table, {"avx2", has_avx2()}},
#endif
#if HEADWISE_HAVE_AVX512
    {&avx512::table, {"avx512", has_avx512()}},
#endif
#if HEADWISE_HAVE_AVX512BF16
    {&avx512bf16::table, {"avx512bf16", has_avx512() && has_bf16_products()}},
#endif
};
constexpr int count = sizeof choices / sizeof choices[0];

const Choice* named(const char* name) {
  for (const Choice& choice : choices)
    if (choice.build.supported && std::strcmp(choice.build.name, name) == 0) return &choice;
  return nullptr;
}

const Choice* first_choice() {
  if (const char* wish = std::getenv("HEADWISE_ISA"))
    if (const Choice* found = named(wish)) return found;
  const Choice* best = &choices[0];
  for (const Choice& choice : choices)
    if (choice.build.supported) best = &choice;
  return best;
}

std::atomic<const Choice*> chosen{nullptr};

const Choice& choice() {
  const Choice* now = chosen.load(std::memory_order_acquire);
  if (!now) {
    now = first_choice();
    chosen.store(now, std::memory_order_release);
  }
  return *now;
}

}  // namespace

Status forward(const ForwardArguments& arguments) { return choice().table->forward(arguments); }
Status backward(const BackwardArguments& arguments) { return choice().table->backward(arguments); }
Status measure(const MeasureArguments& arguments) { return choice().table->measure(arguments); }
double multiply_add(Type type) { return choice().table->multiply_add(type); }
std::uint32_t read_memory(const void* data, std::int64_t count) { return choice().table->read_memory(data, count); }

int builds(const Build** list) {
  static Build all[count];
  for (int i = 0; i < count; ++i) all[i] = choices[i].build;
  *list = all;
  return count;
}

const char* isa() { return choice().build.name; }

bool use_isa(const char* name) {
  const Choice* found = named(name);
  if (found) chosen.store(found, std::memory_order_release);
  return found != nullptr;
}

const char* features() {
#if HEADWISE_X86
  static char words[256];
  char text[256] = "";
  const auto add = [&](bool there, const char* word) {
    if (there) std::strcat(std::strcat(text, *text ? " " : ""), word);
  };
  add(__builtin_cpu_supports("sse4.2"), "sse4.2");
  add(__builtin_cpu_supports("avx"), "avx");
  add(__builtin_cpu_supports("avx2"), "avx2");
  add(__builtin_cpu_supports("fma"), "fma");
  add(__builtin_cpu_supports("avx512f"), "avx512f");
  add(__builtin_cpu_supports("avx512bw"), "avx512bw");
  add(__builtin_cpu_supports("avx512dq"), "avx512dq");
  add(__builtin_cpu_supports("avx512vl"), "avx512vl");
  add(__builtin_cpu_supports("avx512f") && has_bf16_products(), "avx512bf16");
  std::memcpy(words, text, sizeof words);
  return words;
#elif defined(__ARM_NEON)
  return "neon";
#else
  return "";
#endif
}

const char* compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#else
  return "unknown";
#endif
}

}  // namespace headwise
