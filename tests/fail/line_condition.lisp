(composite ((A{float}[N]) -> (C{float}[N]) where N > Q) (dotimes (i N) (setf (aref C i) (aref A i))))
