"""The query-intent service, in the order of a query's path: routes, text, tokenisation, batching, backends."""
