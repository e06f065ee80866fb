"""The compiled kernel in its process: signals, forks, threads, memory, and the numbers that it is handed."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest
import torch

from headwise.attention import attention, problem
from headwise.kernels.native_build import native
from headwise.kernels.native_call import Told
from headwise.masks import Causal

pytestmark = pytest.mark.skipif(native is None, reason="the compiled kernel wasn't built")


LONG = """
import signal, torch, headwise as hw
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started this may ignore it
torch.set_num_threads(1)
x = torch.randn(1, 8, 70_000, 64)
print('ready', flush=True)
try:
    hw.attention(x, x, x, kernel='native')
except KeyboardInterrupt:
    print('interrupted', flush=True)
"""

IGNORED = """
import signal, torch, headwise as hw
seen = []
signal.signal(signal.SIGINT, lambda *given: seen.append(1))
x = torch.randn(1, 1, 6_000, 64)
want = hw.attention(x, x, x, kernel='native')
import os, threading
threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
for _ in range(40):
    got = hw.attention(x, x, x, kernel='native')
    assert torch.equal(got, want)
    if seen:
        break
print('fine' if seen else 'no signal')
"""

FORKED = """
import os, torch, headwise as hw
torch.set_num_threads(3)
x = torch.randn(2, 4, 300, 32)
want = hw.attention(x, x, x, kernel='native')
child = os.fork()
if child == 0:
    same = torch.equal(hw.attention(x, x, x, kernel='native'), want)
    os._exit(0 if same else 3)
_, status = os.waitpid(child, 0)
again = torch.equal(hw.attention(x, x, x, kernel='native'), want)
print('fine' if status == 0 and again else status)
"""


def run_alone(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=200, check=False
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_ends_a_long_call() -> None:
    """It would take minutes."""
    with subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        try:
            child.wait(timeout=1.5)  # long enough to be within the call
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=120)
    assert said == "interrupted\n"


@pytest.mark.skipif(sys.platform == "win32", reason="signals and processes of POSIX")
@pytest.mark.parametrize(
    "program", [IGNORED, FORKED], ids=["a signal that raises nothing", "a fork after use"]
)
def test_other_signals_and_forks(program: str) -> None:
    done = run_alone(program)
    assert done.stdout == "fine\n", done.stderr


def test_several_threads_at_once() -> None:
    x = torch.randn(2, 4, 200, 32, generator=torch.Generator().manual_seed(0))
    want = attention(x, x, x, kernel="native", mask=Causal())
    wrong: list[int] = []

    def work(number: int) -> None:
        found = (attention(x, x, x, kernel="native", mask=Causal()) for _ in range(20))
        wrong.extend(number for one in found if not torch.equal(one, want))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_other_threads_run_meanwhile() -> None:
    """Whoever counts on the main thread goes on counting during one long call on another."""
    x = torch.randn(1, 8, 2000, 64)
    count, passed = 0, []

    def work() -> None:
        before = count
        attention(x, x, x, kernel="native")
        passed.append(count - before)

    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        count += 1
    assert passed[0] > 100


GRADIENT_OF_A_BIAS = """
import resource, sys, torch, headwise as hw
torch.set_num_threads(1)
length = int(sys.argv[1])
q, k, v = (torch.randn(1, 2, length, 8, requires_grad=True) for _ in range(3))
bias = torch.zeros(length, requires_grad=sys.argv[2] == "learned")
out = hw.attention(q, k, v, mask=hw.Causal() & hw.Window(64, 0), bias=bias, kernel="native")
out.sum().backward()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory as Linux tells it, in KiB")
def test_the_gradient_of_a_bias_of_keys_takes_memory_linear_in_length() -> None:
    """Its sums are shared by heads and by blocks of keys, not by pairs of blocks (20 MiB here, and four times
    as much for twice the length)."""
    learned, fixed = (
        int(run_alone(GRADIENT_OF_A_BIAS, "200000", kind).stdout) for kind in ("learned", "fixed")
    )
    assert learned - fixed < 8 * 1024


NO_MEMORY = """
import resource, torch, headwise as hw
torch.set_num_threads(1)
q, k, v = torch.randn(1, 1, 64, 8), torch.randn(1, 1, 64, 8), torch.randn(1, 1, 64, 200_000)
hw.attention(q[..., :8, :], k, v[..., :8], kernel="native")
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = used + 100 * 2**20  # enough for the output, and not for what the kernel works in
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    hw.attention(q, k, v, kernel="native")
except MemoryError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_where_there_is_no_memory_it_says_so() -> None:
    done = run_alone(NO_MEMORY)
    assert done.stdout == "the kernel 'native' got no memory to work in\n", done.stderr


@pytest.mark.parametrize("change", ["one fewer", "one more"])
@pytest.mark.parametrize("part", ["problem", "mask", "results"])
def test_numbers_are_counted(part: str, change: str) -> None:
    """A number too many or too few would make an address of something else."""
    x, lse = torch.randn(1, 1, 4, 8), torch.zeros(1, 1, 4)
    told = Told(problem(x, x, x, mask=Causal()).flatten())
    results = (*(x.clone().data_ptr(), 32, 32, 8), lse.data_ptr())

    def changed(numbers: tuple) -> tuple:
        return numbers[:-1] if change == "one fewer" else (*numbers, 0)

    numbers = told.numbers
    at = next(place for place, number in enumerate(numbers) if isinstance(number, tuple))
    if part == "problem":
        numbers = changed(numbers)
    elif part == "mask":
        numbers = (*numbers[:at], changed(numbers[at]), *numbers[at + 1 :])
    else:
        results = changed(results)
    with pytest.raises(IndexError, match="numbers than are read"):
        native.forward(numbers, results, None, True)
    with pytest.raises(TypeError, match="come as a tuple"):
        native.forward((*told.numbers[:at], 7, *told.numbers[at + 1 :]), results, None, True)
