"""What both generations of the stand-in SDK are made of: a Neuron runtime that is played by files and threads.

It stands for SDK and hardware in tests: strict where the real one is strict, with its error texts, and across real
processes. ``settings`` says how it is steered. Nothing here proves anything about a chip.
"""

import warnings

# The torch that the real SDKs are made for does not call its own TorchScript deprecated.
warnings.filterwarnings("ignore", message=r"`torch\.jit\.", category=DeprecationWarning)
