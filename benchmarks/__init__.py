"""The side-by-side: caten and its peers on the same workloads, in one run."""
