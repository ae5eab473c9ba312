"""Writes the fixtures of this folder with faiss-cpu 1.15.1.

Beside each index is a file of float32: 5 queries of dimension 16, the ids of the
5 nearest vectors of each query, and their scores (squares of distances).
"""
import faiss
import numpy as np

random = np.random.RandomState(3)
dim, count = 16, 100


def write(name, index, x):
    index.train(x)
    index.add(x)
    if name.startswith("ivf"):
        index.nprobe = index.nlist
    queries = x[:5] + 1  # whole numbers for the direct types, which round queries
    scores, ids = index.search(queries, 5)
    faiss.write_index(index, name + ".index")
    np.concatenate([queries.flatten(), ids.flatten(), scores.flatten()]).astype("<f4").tofile(name + ".f32")


faiss.omp_set_num_threads(1)
x = random.randn(count, dim).astype("f4")
for name, factory in [
    ("flat_IxF2", "Flat"),
    ("hnsw_flat_IHNf", "HNSW4"),
    ("hnsw_pq_IHNp", "HNSW4_PQ4x4"),
    ("ivf_hnsw_IwFl", "IVF4_HNSW4,Flat"),
    ("ivf_sq8_IwSq", "IVF4,SQ8"),
    ("pq_5_bits_IxPq", "PQ4x5"),
    ("sq_bf16_IxSQ", "SQbf16"),
    ("random_rotation_IxPT", "RR8,Flat"),
    ("pca_whitening_IxPT", "PCAW8,Flat"),
    ("pca_rotation_IxPT", "PCAR8,Flat"),
]:
    write(name, faiss.index_factory(dim, factory, faiss.METRIC_L2), x)
x = np.round(random.rand(count, dim) * 120).astype("f4")
for name in ["QT_8bit_direct", "QT_8bit_direct_signed"]:
    write("sq_" + name + "_IxSQ", faiss.IndexScalarQuantizer(dim, getattr(faiss.ScalarQuantizer, name)), x)
