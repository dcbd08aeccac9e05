"""Parts that models are assembled from: tensors -> tensors. Each knows nothing of the others' models."""
