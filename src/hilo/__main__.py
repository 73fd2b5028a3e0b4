"""`python -m hilo` is the command `hilo`."""

from hilo.cli import main

if __name__ == "__main__":
    main()
