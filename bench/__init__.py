"""The measurements, one file each: `python -m bench` runs them and prints a table of each."""
