// Ctrl-C during a long call: Python only notes the signal and waits for the interpreter, which the call holds
// up. So while one runs on the main thread, the signal also sets a flag that ends the call.
#pragma once

#include <csignal>

#if defined(_WIN32)
#define HEADWISE_HAS_SIGACTION 0
#else
#define HEADWISE_HAS_SIGACTION 1
#include <pthread.h>
#endif

namespace headwise {

// At most one exists that watches, since only the main thread's do; the flag is for that one.
class Interruptible {
 public:
  explicit Interruptible(bool wanted) {
#if HEADWISE_HAS_SIGACTION
    if (!wanted || !pthread_equal(pthread_self(), main_thread())) return;
    if (sigaction(SIGINT, nullptr, &before()) != 0) return;
    // Whoever ignores the signal, or gave the system a handler of another form, is left alone.
    if ((before().sa_flags & SA_SIGINFO) || before().sa_handler == SIG_IGN || before().sa_handler == SIG_DFL) {
      return;
    }
    raised() = 0;
    struct sigaction mine = before();
    mine.sa_handler = [](int signal) {
      raised() = 1;
      before().sa_handler(signal);
    };
    watching_ = sigaction(SIGINT, &mine, nullptr) == 0;
#else
    (void)wanted;
#endif
  }

  ~Interruptible() {
#if HEADWISE_HAS_SIGACTION
    if (watching_) sigaction(SIGINT, &before(), nullptr);
#endif
  }

  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  const volatile int* flag() const { return watching_ ? &raised() : nullptr; }

  // Remembers the thread that imports the module (Python gives signals to the main thread alone).
#if HEADWISE_HAS_SIGACTION
  static void on_this_thread() { main_thread() = pthread_self(); }
#else
  static void on_this_thread() {}
#endif

 private:
#if HEADWISE_HAS_SIGACTION
  static pthread_t& main_thread() {
    static pthread_t thread{};
    return thread;
  }
  static struct sigaction& before() {
    static struct sigaction handler{};
    return handler;
  }
#endif
  static volatile int& raised() {
    static volatile int flag = 0;
    return flag;
  }

  bool watching_ = false;
};

}  // namespace headwise
