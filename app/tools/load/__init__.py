"""``query-intent load``: open-loop load on any JSON endpoint, with latencies that can be trusted.

What is asked (``queries``, ``target``) and when (``app.tools.arrivals``) becomes a ``plan``; ``run`` sends it on time
(``pacing``) over a pool of connections (``client``) and notes what became of each request (``outcomes``); ``report``
and ``picture`` say what that means; ``search`` looks for the highest rate that meets an objective.
"""
