// Ctrl-C during a long call: Python only notes the signal and waits for the interpreter, which the call holds
// up. So while one runs on the main thread, the signal also sets a flag that ends the call.
#pragma once

#include <pthread.h>

#include <csignal>

namespace headwise {

// At most one exists that watches, since only the main thread's do; the flag is for that one.
class Interruptible {
 public:
  explicit Interruptible(bool wanted) {
    if (!wanted || !pthread_equal(pthread_self(), main_thread())) return;
    if (sigaction(SIGINT, nullptr, &before()) != 0) return;
    // Whoever ignores the signal, or gave the system a handler of another form, is left alone.
    if ((before().sa_flags & SA_SIGINFO) || before().sa_handler == SIG_IGN || before().sa_handler == SIG_DFL) {
      return;
    }
    raised() = 0;
    struct sigaction mine = before();
    mine.sa_handler = [](int signal) {
      __atomic_store_n(&raised(), 1, __ATOMIC_RELAXED);  // helpers read it, too
      before().sa_handler(signal);
    };
    watching_ = sigaction(SIGINT, &mine, nullptr) == 0;
  }

  ~Interruptible() {
    if (watching_) sigaction(SIGINT, &before(), nullptr);
  }

  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  const volatile int* flag() const { return watching_ ? &raised() : nullptr; }

  // Remembers the thread that imports the module (Python gives signals to the main thread alone).
  static void on_this_thread() { main_thread() = pthread_self(); }

 private:
  static pthread_t& main_thread() {
    static pthread_t thread{};
    return thread;
  }
  static struct sigaction& before() {
    static struct sigaction handler{};
    return handler;
  }
  static volatile int& raised() {
    static volatile int flag = 0;
    return flag;
  }

  bool watching_ = false;
};

}  // namespace headwise
