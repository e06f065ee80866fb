"""Runs on several processes, forked from one that has torch: `python processes_run.py FOLDER WORLD STEPS ...`

Each run (a folder, a number of processes, steps) follows the one before. Processes get the environment that
torchrun gives; under torchrun itself (WORLD is 0) this process trains.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import accelerate  # noqa: F401
import safetensors.torch  # noqa: F401
import torch
import torch._dynamo
from toys import Digits, quick

from headwise.training import train


def run(folder, steps):
    recipe = quick(steps=steps, clip=0.5, accumulate=2, shard="sharded" in folder.name)
    report = train(Digits(dropout=0.0, dtype=torch.float64), recipe, folder, resume=True, show=False)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    return report


def forked(folder, world, steps):
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    children = []
    for rank in range(world):
        number = os.fork()
        if number == 0:
            if world > 1:
                os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world)}
                os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
                os.environ |= {"GLOO_SOCKET_IFNAME": "lo"}
            try:
                run(folder, steps)
            except BaseException as error:
                print(f"process {rank}: {type(error).__name__}: {error}", file=sys.stderr)
                os._exit(1)
            os._exit(0)
        children.append(number)
    return [os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) for number in children]


if __name__ == "__main__":
    for at in range(1, len(sys.argv), 3):
        folder, world, steps = Path(sys.argv[at]), *map(int, sys.argv[at + 1 : at + 3])
        if world == 0:
            run(folder, steps)
        elif any(forked(folder, world, steps)):
            raise SystemExit(f"a process failed: {folder.name}, {world} processes")
