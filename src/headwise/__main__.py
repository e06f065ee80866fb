"""`python -m headwise` is the `headwise` command."""

from headwise.cli.main import run

if __name__ == "__main__":
    run()
