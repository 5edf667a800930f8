"""``query-intent doctor``: what this machine has and lacks for serving, proved from the device up to a load over HTTP.

One module a family of checks, each a function that returns a ``Check``; ``examination`` puts them in order.
"""
