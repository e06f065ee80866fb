"""`python -m headwise.study.running`: jobs as JSON in, what happened as lines of JSON out. See `worker`."""

from headwise.study.running.worker import main

main()
