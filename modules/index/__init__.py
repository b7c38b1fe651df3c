"""Files to chunks in a collection of Milvus."""
