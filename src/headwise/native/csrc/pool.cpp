#include "pool.hpp"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>

namespace headwise::pool {
namespace {

struct Job {
  std::int64_t pieces;
  Work work;
  void* context;
  const volatile int* stop;
  std::atomic<std::int64_t> next{0};
  std::atomic<int> status{static_cast<int>(Status::ok)};

  bool ended() {
    if (stop && __atomic_load_n(stop, __ATOMIC_RELAXED)) end(Status::interrupted);
    return status.load(std::memory_order_relaxed) != static_cast<int>(Status::ok);
  }
  void end(Status why) {  // the first reason stays
    int none = static_cast<int>(Status::ok);
    status.compare_exchange_strong(none, static_cast<int>(why), std::memory_order_relaxed);
  }
};

thread_local Job* current = nullptr;

void serve(Job& job) {
  Job* outer = current;
  current = &job;
  while (!job.ended()) {
    const std::int64_t piece = job.next.fetch_add(1, std::memory_order_relaxed);
    if (piece >= job.pieces) break;
    if (!job.work(job.context, piece)) job.end(Status::no_memory);
  }
  current = outer;
}

// Helpers sleep on `woken` and take what `job` holds. The call waits until those who took it are done.
struct Helpers {
  std::mutex busy;  // held by the call that has the helpers
  std::mutex mutex;
  std::condition_variable woken, done;
  Job* job = nullptr;
  std::uint64_t turn = 0;  // counts calls, so that a helper serves each once
  int wanted = 0;          // how many more may join the present call
  int working = 0;
  int started = 0;

  void loop() {
    std::uint64_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      woken.wait(lock, [&] { return turn != seen && wanted > 0; });
      seen = turn;
      --wanted;
      ++working;
      Job* mine = job;
      lock.unlock();
      serve(*mine);
      lock.lock();
      if (--working == 0) done.notify_one();
    }
  }

  // Signals are not for helpers: whoever handles one expects to be on a thread of the program's own.
  void start(int helpers) {
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    for (; started < helpers; ++started) {
      try {
        std::thread([this] { loop(); }).detach();
      } catch (...) {  // no more threads to be had: those there are will do
        break;
      }
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void share(Job& mine, int helpers) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (started < helpers) start(helpers);
      job = &mine;
      wanted = helpers < started ? helpers : started;
      ++turn;
    }
    woken.notify_all();
    serve(mine);
    std::unique_lock<std::mutex> lock(mutex);
    wanted = 0;
    done.wait(lock, [&] { return working == 0; });
    job = nullptr;
  }
};

// Never destroyed: helpers may still sleep in it when the process ends.
alignas(Helpers) unsigned char room[sizeof(Helpers)];
Helpers* helpers = nullptr;
std::once_flag made;
std::atomic<int> allowed{0};

// A forked child has none of its parent's threads, and locks in whatever state they were.
void start_anew() { helpers = new (room) Helpers; }

Helpers& the_helpers() {
  std::call_once(made, [] {
    start_anew();
    pthread_atfork(nullptr, nullptr, start_anew);
  });
  return *helpers;
}

struct Room {
  void* start = nullptr;
  std::size_t size = 0;
  ~Room() { std::free(start); }
};

thread_local Room mine;

constexpr double worth_waking = 1e6;  // operations per thread below which a wake-up costs more than it gives

}  // namespace

Status run(std::int64_t pieces, double operations, Work work, void* context, const volatile int* stop) {
  Job job{pieces, work, context, stop};
  double useful = operations / worth_waking;
  if (useful > static_cast<double>(pieces)) useful = static_cast<double>(pieces);
  const int most = threads();
  const int count = useful >= most ? most : static_cast<int>(useful);
  if (count > 1) {
    Helpers& all = the_helpers();
    std::unique_lock<std::mutex> turn(all.busy, std::try_to_lock);
    if (turn.owns_lock())
      all.share(job, count - 1);
    else
      serve(job);
  } else {
    serve(job);
  }
  return static_cast<Status>(job.status.load());
}

bool cancelled() { return current && current->ended(); }

bool wait_turn(const std::int32_t* counter, std::int32_t turn) {
  for (int tries = 0; __atomic_load_n(counter, __ATOMIC_ACQUIRE) != turn; ++tries) {
    if (cancelled()) return false;
    if (tries < 64) continue;  // most often the other piece is as far as this one
    if (tries < 256)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

void pass_turn(std::int32_t* counter) { __atomic_fetch_add(counter, 1, __ATOMIC_RELEASE); }

void* reserve(std::size_t bytes) {
  const std::size_t whole = (bytes + 63) / 64 * 64;
  void* memory = std::aligned_alloc(64, whole ? whole : 64);
  if (memory) std::memset(memory, 0, whole);
  return memory;
}

void release(void* memory) { std::free(memory); }

void* scratch(std::size_t bytes) {
  if (mine.size < bytes) {
    std::free(mine.start);
    mine.size = 0;
    const std::size_t whole = (bytes + 4095) / 4096 * 4096;
    mine.start = std::aligned_alloc(4096, whole);
    if (mine.start) mine.size = whole;
  }
  return mine.start;
}

}  // namespace headwise::pool

namespace headwise {

void set_threads(int count) { pool::allowed.store(count < 1 ? 1 : count); }

int threads() {
  const int count = pool::allowed.load();
  if (count) return count;
  const unsigned cores = std::thread::hardware_concurrency();
  return cores ? static_cast<int>(cores) : 1;
}

}  // namespace headwise
