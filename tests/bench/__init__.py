"""Tests of the pure parts of the measurements; no time is ever asserted."""
