"""The set-up: the locked packages, and what installs them with nothing but the standard library."""
