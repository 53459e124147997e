"""Specs that many tests begin with."""

GEMM = '''\
[composite]
documentation = "C <- A @ B + C"
name = "Gemm"
inputs = ["A{float}[M K]<0 1>()", "B{float}[K N]<0 1>()", "C{float}[M N]<0 1>()"]
outputs = ["C"]

[implementation]
code = """
(dotimes (i M)
  (dotimes (j N)
    (dotimes (p K)
      (incf (aref C i j) (* (aref A i p) (aref B p j))))))
"""
'''
AXPY = '''\
[composite]
name = "Axpy"
inputs = ["a{float}[]", "X{float}[N]", "Y{float}[N]"]
outputs = ["Y"]

[implementation]
code = "(dotimes (i N) (setf (aref Y i) (+ (* a (aref X i)) (aref Y i))))"
'''

# A map, and the beginning of a rule for it: its replacement or its call follows.
MAP = """[composite]
name = "Map"
inputs = ["x{float}[N]"]
outputs = ["y{float}[N]"]
[implementation]
lang = "python"
code = "return np.exp(x)"
[rewrite]
name = "other"
inputs = ["x{float}[N]"]
outputs = ["y{float}[N]"]
lang = "python"
pattern = "return np.exp(x)"
"""
