(composite Add ((A{float}[N]) -> (C{float}[N]) if N > 0) (dotimes (i N) (setf (aref C i) (aref A i))))
