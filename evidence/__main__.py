"""`python -m evidence` is the `evidence` command."""

from evidence.cli import main

if __name__ == "__main__":
    main(prog_name="evidence")
