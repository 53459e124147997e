(composite Add ((A{flt}[N]) -> (C{float}[N])) (dotimes (i N) (setf (aref C i) (aref A i))))
(composite Sub ((A{float}[N]) -> (C{float}[N])) (dotimes (i N) (setf (aref C i) B)))
