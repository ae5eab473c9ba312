"""Searches an index with FAISS, for bench/faiss_test.go.

    faiss_peer.py INDEX QUERIES

QUERIES are float32 of the dimension of the index. Each line of stdin is a batch
size, a number of threads and a number of rounds; the answer is the least time of
a query in nanoseconds. The line "ids" asks for the 10 nearest of each query.
"""
import sys
import time

import faiss
import numpy as np

index = faiss.read_index(sys.argv[1])
queries = np.fromfile(sys.argv[2], "<f4").reshape(-1, index.d)
print(faiss.__version__, faiss.get_compile_options().strip(), flush=True)
for line in sys.stdin:
    if line.strip() == "ids":
        _, ids = index.search(queries, 10)
        print(" ".join(str(i) for i in ids.flatten()), flush=True)
        continue
    batch, threads, rounds = map(int, line.split())
    faiss.omp_set_num_threads(threads)
    best = float("inf")
    for i in range(rounds):
        at = i * batch % (len(queries) - batch + 1)
        q = queries[at : at + batch]
        start = time.perf_counter_ns()
        index.search(q, 10)
        best = min(best, time.perf_counter_ns() - start)
    print(int(best / batch), flush=True)
