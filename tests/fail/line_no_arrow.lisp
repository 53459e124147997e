(composite Add ((A{float}[N]) (C{float}[N])) (dotimes (i N) (setf (aref C i) (aref A i))))
