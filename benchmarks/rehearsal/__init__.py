"""A rollout, rehearsed on one machine: instances of the service behind a proxy that checks their health.

``instance`` is what ECS replaces and ``proxy`` stands for the load balancer; ``rollout`` has the phases through the
proxy, ``lifecycle`` those of one instance alone.
"""
