"""Compiling for Inferentia: what the compilers are told, a process for each row length, and what went wrong in it."""
