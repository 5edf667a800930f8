"""Where Inf1 keeps its placement calls."""

from __future__ import annotations

from neuron_standin.placement import multicore_context, neuron_cores_context, set_multicore, set_neuron_cores

__all__ = ["multicore_context", "neuron_cores_context", "set_multicore", "set_neuron_cores"]
