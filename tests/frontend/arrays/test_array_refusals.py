"""What whole-array bodies refuse: one test for each message, with its place and what to do."""
from __future__ import annotations

import pytest
from value_interpreter import evaluated

from caten.errors import CatenError
from caten.frontend.arrays.handles import NeedsLoops

SIGNATURE = ('X f32 M N; Y f32 M N; D f64 M N; v f32 N; A f32 M K; W f32 K N; S f32 3 4; C3 f32 3; C4 f32 4; P f32 2 3 4; I i64 K; J i32 M N; Q bool M N; a f32; n i64; out R f32 M N')
PYTHON = [
    ("return X[N - 1.5]", "E306 1:12 an index is an integer, a slice, an array of integers, None or '...' | convert numbers with .astype(np.int64)"),
    ("return X[()][[]]", "E306 1:14 an index is an integer, a slice, an array of integers, None or '...' | convert numbers with .astype(np.int64)"),
    ("return np.arange(0, np.inf)", "E326 1:8 the bounds of np.arange are numbers and sizes that are known at entry"),
    ("return np.hstack((v, a))", "E320 1:8 the shapes [N] and [] do not fit together along axis 0 | all other axes are equal"),
    ('return Z', "E220 1:8 there is no 'Z' here | known here: M, N, K, X, Y, D, v, A, W, S, C3, C4, …, np, len, range, max, min, sum, …; caten ops lists the functions of the library, docs/language.md those of NumPy"),
    ('return X + y', "E220 1:12 there is no 'y' here | did you mean 'Y'?"),
    ('return relu6(X)', "E220 1:8 there is no 'relu6' here | did you mean 'relu'? caten ops lists the functions of the library, docs/language.md those of NumPy"),
    ('return np.softmax(X)', "E221 1:8 there is no np.softmax in a body | caten ops lists the functions of the library, docs/language.md those of NumPy"),
    ('return np.expp(X)', "E221 1:8 there is no np.expp in a body | did you mean 'exp'? caten ops lists the functions of the library, docs/language.md those of NumPy"),
    ('return X.summ()', "E221 1:8 An array of the shape [M N] has no '.summ' | did you mean 'sum'?"),
    ('return math.gamma(a) * X', "E221 1:8 there is no math.gamma in a body | caten ops lists the functions of the library, docs/language.md those of NumPy"),
    ('import numpy as np', "E244 1:1 a body cannot use 'import' | np is known without an import"),
    ('while True: pass', "E240 1:1 there is no 'while': every loop runs a number of times that is known when it starts | for k in range(limit): … if condition: break"),
    ('with X: pass', "E244 1:1 a body cannot use 'with'"),
    ('class A: pass', "E244 1:1 a body cannot use 'class'"),
    ('del X', "E244 1:1 a body cannot use 'del'"),
    ('f"{X}"', 'E244 1:1 a body cannot use f-strings'),
    ('return {X: 1}', 'E244 1:9 the keys of a dictionary are numbers, texts and tuples that are known'),
    ("return {'a': X}['b']", "E323 1:8 there is no key 'b' in this dictionary | its keys: 'a'"),
    ('return {1: X}', "E322 1:1 the output 'R' is an array, not a dictionary"),
    ('X + Y', 'E224 1:3 the value of this expression is not used | assign or return it'),
    ('X.T = Y', 'E244 1:1 only a name or a part of an array can be assigned'),
    ('return [k := 1]', 'E244 1:9 a body cannot use :='),
    ('def f(x=1, *y): return x', 'E244 1:1 a function of a body takes plain names: no *args or **kwargs'),
    ('return lambda x, *y: x', 'E244 1:8 a function of a body takes plain names: no *args or **kwargs'),
    ('R += 1', "E227 1:1 this reads the output 'R', which is no input, before anything sets it | R[...] = 0 first, or list it among the inputs too if it comes from the caller"),
    ('return R + 1', "E227 1:8 this reads the output 'R', which is no input, before anything sets it | R[...] = 0 first, or list it among the inputs too if it comes from the caller"),
    ('R = R', "E227 1:5 this reads the output 'R', which is no input, before anything sets it | R[...] = 0 first, or list it among the inputs too if it comes from the caller"),
    ('X += 1', 'E225 1:1 \'X\' is an input and no output: it cannot be changed | take a new name, or list "X" among the outputs'),
    ('X[0] = 1', 'E225 1:1 \'X\' is an input and no output: it cannot be changed | take a new name, or list "X" among the outputs'),
    ('M, M = X.shape', "E226 1:4 'M' is a size and cannot be assigned another value | take another name"),
    ('a, *b, c = [1]', "E229 1:1 1 value for 3 names"),
    ('N = 3', "E226 1:1 'N' is a size and cannot be assigned another value | take another name"),
    ('pass', "E228 1:1 the output 'R' is never written | assign it, or take it off the outputs"),
    ('return X, Y', 'E229 1:1 2 values are returned for 1 output | the outputs are R'),
    ('return', "E228 1:1 the output 'R' is never written | assign it, or take it off the outputs"),
    ('return None', "E228 1:1 the output 'R' is never written | assign it, or take it off the outputs"),
    ('return "text"', "E322 1:1 the output 'R' is an array, not the text 'text'"),
    ('return S + C3', 'E320 1:10 the shapes [3 4] and [3] do not fit together | axes are compared from the last one on: each pair is equal, or one of them is 1'),
    ('return S @ S', 'E320 1:10 the shapes [3 4] and [3 4] do not fit together in @ | axis 0 of [3 4] meets one of another extent'),
    ('return S @ C3', 'E320 1:10 the shapes [3 4] and [3] do not fit together in @ | axis 0 of [3] meets one of another extent'),
    ('return np.einsum("ij,jk->ik", S, S)', 'E320 1:8 the shapes [3 4] and [3 4] do not fit together in einsum | axis 0 of [3 4] meets one of another extent'),
    ('return a @ X', 'E330 1:10 @ takes arrays of one axis or more | write * for a product with a number'),
    ('return np.matmul(X, 2)', 'E330 1:8 @ takes arrays of one axis or more | write * for a product with a number'),
    ('return X + D', "E310 1:1 the output 'R' is float, but the value is double | convert it: .astype(np.float32)"),
    ('return X & Y', 'E304 1:10 & is not defined on float | it is for integers and bools'),
    ('return J + 0.5', "E310 1:1 the output 'R' is float, but the value is double | convert it: .astype(np.float32)"),
    ('return ~X', 'E304 1:8 ~ is not defined on float | it is for integers and bools'),
    ('return J', "E310 1:1 the output 'R' is float, but the value is int32 | convert it: .astype(np.float32)"),
    ('return np.where(X, 1, "a")', "E322 1:8 the argument 'y' of np.where is an array or a number, not the text 'a'"),
    ('return X.sum(axis=2)', 'E321 1:8 there is no axis 2: the array has 2 axes | axes are counted from 0, or from the end: -1 is the last of 2'),
    ('return X.sum(axis=(0, 0))', 'E321 1:8 the axes (0, 0) name an axis twice'),
    ('return X.sum(axis="rows")', 'E321 1:8 an axis is an integer that is known when the body is compiled'),
    ('return X.sum(axis=I)', 'E321 1:8 an axis is an integer that is known when the body is compiled'),
    ('return np.transpose(X, (0, 1, 2))', 'E321 1:8 there is no axis 2: the array has 2 axes | axes are counted from 0, or from the end: -1 is the last of 2'),
    ('return np.transpose(X, (0,))', 'E321 1:8 1 axes are given to order the 2 of [M N] | name each axis once'),
    ('return np.squeeze(S, 0)', 'E321 1:8 axis 0 of [3 4] has 3 elements: only an axis of one element can be left out'),
    ('return X.sum(axes=0)', "E322 1:8 .sum has no argument 'axes' | did you mean 'axis'?"),
    ('return np.sum()', "E322 1:8 np.sum lacks its argument 'x' | np.sum(x, axis=None, dtype=None, keepdims=False, initial=None, where=True)"),
    ('return np.sum(X, 0, None, False, 5, True, 7)', 'E322 1:8 np.sum takes at most 6 arguments, not 7 | np.sum(x, axis=None, dtype=None, keepdims=False, initial=None, where=True)'),
    ('return np.sum(X, x=X)', "E322 1:8 the argument 'x' of np.sum is given twice | np.sum(x, axis=None, dtype=None, keepdims=False, initial=None, where=True)"),
    ('return np.exp(X, Y)', 'E322 1:8 np.exp takes at most 1 argument, not 2 | np.exp(x)'),
    ('return np.reshape(X, "a")', "E322 1:8 the argument 'shape' of np.reshape is a shape: numbers and arithmetic over sizes, not the text 'a'"),
    ('return S.reshape(5, 2)', 'E324 1:8 [3 4] cannot be reshaped to [5 2]: the numbers of elements differ'),
    ('return S.reshape(-1, 5)', 'E324 1:8 [3 4] cannot be reshaped to [-1 5]: the number of elements is no multiple'),
    ('return S.reshape(-1, -1)', 'E324 1:8 only one extent of a new shape can be -1'),
    ('return np.random.rand(3)', 'E327 1:8 np.random.rand is not supported yet in expressions over whole arrays | a body has no state: random_bits, randint and others of `caten ops` take a key'),
    ('return np.zeros((M, -1))', 'E324 1:8 [M -1] is no shape: an extent is negative'),
    ('return np.full(-2, 1.5)', 'E324 1:8 [-2] is no shape: an extent is negative'),
    ('return np.ones(-N - 1, bool)', 'E324 1:8 [(- (* -1 N) 1)] is no shape: an extent is negative'),
    ('return np.eye(2, -3)', 'E324 1:8 [2 -3] is no shape: an extent is negative'),
    ('return S.reshape(-2, 6)', 'E324 1:8 [-2 6] is no shape: an extent is negative'),
    ('return X.reshape(I)', "E322 1:8 the argument 'shape' of .reshape is a shape: numbers and arithmetic over sizes, not an array of the shape [K]"),
    ('return np.zeros((3, I.sum()))', "E322 1:8 the argument 'shape' of np.zeros is a shape: numbers and arithmetic over sizes, not a tuple with a scalar"),
    ('return np.max(()) * X', "E321 1:8 the list is empty: no element is the maximum"),
    ('return math.prod(X)', "E322 1:8 math.prod takes a list of arrays and numbers, not an array of the shape [M N] | np.prod multiplies the elements of an array"),
    ('return math.prod((X, "a"))', "E322 1:8 math.prod takes a list of arrays and numbers, not a tuple | np.prod multiplies the elements of an array"),
    ('return S[3]', 'E323 1:10 the index 3 is outside axis 0 of [3 4]'),
    ('return S[:, -5]', 'E323 1:10 the index -5 is outside axis 1 of [3 4]'),
    ('return S[0, 0, 0]', 'E307 1:10 [3 4] has 2 axes, but 3 indices are given'),
    ('return X[..., ...]', "E323 1:10 only one '...' can stand in an index"),
    ('return X[1.5]', "E306 1:10 an index is an integer, a slice, an array of integers, None or '...' | convert numbers with .astype(np.int64)"),
    ('return X["a"]', "E306 1:10 an index is an integer, a slice, an array of integers, None or '...' | convert numbers with .astype(np.int64)"),
    ('return X[::0]', 'E323 1:10 the step of this slice is 0 | a negative step counts down'),
    ('return X[I[0]:]', 'E326 1:10 the bounds of a slice are numbers and sizes that are known at entry | an index may be an element of an array, a bound may not'),
    ('return X[::n]', 'E326 1:10 the step of a slice is a number that is known when the body is compiled'),
    ('return X[Q]', 'E328 1:1 how many elements a mask selects is not known before the call | np.where(mask, x, 0) keeps the shape; sums, means and extremes of x[mask] are known, and x[mask] = …'),
    ('return X[a]', "E306 1:10 an index is an integer, a slice, an array of integers, None or '...' | convert numbers with .astype(np.int64)"),
    ('return a[0]', 'E307 1:10 [] has 0 axes, but 1 index is given'),
    ('return (1, 2)[5]', 'E323 1:8 the index 5 is outside a list of 2'),
    ('R[Q] = v', 'E328 1:1 a value of the shape [N] cannot be spread over the elements of a mask | Z = np.where(mask, values, Z) takes those of the same place'),
    ('R[0] = S', 'E320 1:1 a value of the shape [3 4] does not fit into [N]'),
    ('R[0, 0] = v', 'E320 1:1 a value of the shape [N] does not fit into []'),
    ('R = v', "E320 1:5 the output 'R' has the shape [M N], but the value has [N] | R[...] = value repeats it along the axes that it lacks"),
    ('return v', "E320 1:1 the output 'R' has the shape [M N], but the value has [N] | R[...] = value repeats it along the axes that it lacks"),
    ('return np.partition(X)', 'E327 1:8 np.partition is not supported yet in expressions over whole arrays | loops over elements can compute it'),
    ('return X.argsort()', 'E327 1:8 argsort is not supported yet in expressions over whole arrays | write np.argsort(…)'),
    ('return X.cumsum(axis=2)', 'E321 1:8 there is no axis 2: the array has 2 axes | axes are counted from 0, or from the end: -1 is the last of 2'),
    ('return np.bincount(I)', 'E328 1:8 how many bins np.bincount makes is not known before the call | np.bincount(x, minlength=N) has N bins, and larger elements of x make the call fail'),
    ('return np.bincount(X, minlength=N)', 'E322 1:8 np.bincount takes integers along one axis, not float[M N]'),
    ('return np.subtract.reduce(X)', "E221 1:8 np.subtract has no '.reduce' | these have: np.add, np.multiply, np.maximum, np.minimum, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.logical_and, np.logical_or"),
    ('return np.add.reduceat(X, [0])', "E221 1:8 np.add has no '.reduceat' | np.add has .reduce, .accumulate, .outer and .at"),
    ('return np.add.at(R, I, 1)', "E221 1:8 np.add.at has no value | it is a statement, np.add.at(Z, index, value)"),
    ('np.add.at(R, I)', 'E322 1:1 np.add.at takes the name of an array, an index and a value | np.add.at(Z, index, value)'),
    ('np.exp.at(R, I, 1)', "E221 1:1 a function has no '.at' | these have: np.add, np.multiply, np.maximum, np.minimum, np.bitwise_and, np.bitwise_or, np.bitwise_xor"),
    ('np.add.at(X, I, 1)', "E225 1:1 'X' is an input and no output: it cannot be changed | take a new name, or list \"X\" among the outputs"),
    ('Z = X + 1\nnp.add.at(Z, slice(1, None), 1)', 'E327 2:1 only indices in an array are supported here yet | Z[a:b] += value adds to a range'),
    ('Z = X + 1\nnp.bitwise_or.at(Z, I, 1)', 'E304 2:1 elements of float cannot be combined in this way'),
    ('Z = X + 1\nnp.add.at(Z, I, v[:, None, None])', 'E320 2:1 a value of the shape [N 1 1] does not fit into [K N]'),
    ('n2 = 3\nnp.add.at(n2, I, 1)', "E311 2:11 'n2' is the number 3: it has no elements"),
    ('return np.linalg.inv(X)', 'E327 1:8 np.linalg.inv is not supported yet in expressions over whole arrays | loops over elements can compute it'),
    ('return np.linalg.foo(X)', "E221 1:8 there is no np.linalg.foo in a body | caten ops lists the functions of the library, docs/language.md those of NumPy"),
    ('return np.argmax(X, axis=(0, 1))', 'E321 1:8 an axis is an integer that is known when the body is compiled'),
    ('return X[:, 0:0].argmax(axis=1)', 'E321 1:8 axis 1 is empty: no element is the maximum'),
    ('return np.linalg.norm(X, 2)', 'E327 1:8 the norm 2 of a matrix is one of its singular values | np.linalg.svd(x, compute_uv=False) gives them'),
    ('return np.linalg.norm(v, "fro")', "E322 1:8 there is no norm 'fro' along 1 axis | 1 axis: a number; 2 axes: 1, -1, np.inf, -np.inf, 'fro'"),
    ('return np.lib.stride_tricks.sliding_window_view(S, 2)', 'E321 1:8 a window has an extent for each axis: 1 is given for 2'),
    ('return np.lib.stride_tricks.sliding_window_view(S, 5, 0)', 'E326 1:8 a window of 5 elements does not fit into axis 0 of [3 4]'),
    ('return np.pad(X, 1, mode="empty")', "E327 1:8 np.pad with the mode 'empty' is not supported yet | there are constant, edge, reflect, symmetric, wrap"),
    ('return np.pad(X, a)', 'E322 1:8 the widths of np.pad are numbers and sizes that are known at entry'),
    ('return np.pad(X, ((1, 1),) * 3)', 'E322 1:8 the widths of np.pad are a number, a pair, or a pair for each of 2 axes | ((before, after), …)'),
    ('return np.pad(X, ((1, 2), (3,)))', 'E322 1:8 the widths of np.pad are a number, a pair, or a pair for each of 2 axes | ((before, after), …)'),
    ('return np.pad(X, ((1, 2), 3))', 'E322 1:8 the widths of np.pad are a number, a pair, or a pair for each of 2 axes | ((before, after), …)'),
    ('return np.pad(X, ((), ()))', 'E322 1:8 the widths of np.pad are a number, a pair, or a pair for each of 2 axes | ((before, after), …)'),
    ('return np.pad(X, ())', 'E322 1:8 the widths of np.pad are a number, a pair, or a pair for each of 2 axes | ((before, after), …)'),
    ('return np.einsum("ij,jk->iz", X, S)', "E325 1:8 the result has 'z', which no operand has"),
    ('return np.einsum("ij->ii", X)', "E325 1:8 the result has 'i' twice"),
    ('return np.einsum("ijk->i", X)', "E325 1:8 'ijk' names 3 axes of an array with 2, [M N]"),
    ('return np.einsum("ij,jk", X)', "E325 1:8 'ij,jk' has subscripts for 2 arrays, but 1 are given"),
    ('return np.einsum("i1", X)', "E325 1:8 'i1' is not of the form 'ij,jk->ik' | letters for axes, a comma between arrays"),
    ('return np.einsum("i.j", X)', "E325 1:8 'i.j': an ellipsis has three dots, once for each array"),
    ('return np.einsum(X, X)', "E322 1:8 the argument 'subscripts' of np.einsum is a text, not an array of the shape [M N] | it must be known when the body is compiled"),
    ('return np.einsum("...i->i", P)', "E325 1:8 the result 'i' lacks the axes of '...' | write '...i'"),
    ('return np.tensordot(X, Y, axes=3)', 'E321 1:8 there are no 3 axes to sum over in [M N] and [M N]'),
    ('return np.tensordot(X, Y, axes=([0], [0, 1]))', 'E321 1:8 1 axes are paired with 2'),
    ('return np.concatenate((S, P))', 'E320 1:8 the shapes [3 4] and [2 3 4] do not fit together along axis 0 | all other axes are equal'),
    ('return np.concatenate((S, C3))', 'E320 1:8 the shapes [3 4] and [3] do not fit together along axis 0 | all other axes are equal'),
    ('return np.concatenate(())', 'E322 1:8 there are no arrays to put together'),
    ('return np.concatenate(X)', "E322 1:8 the argument 'arrays' of np.concatenate is a list of arrays, not an array of the shape [M N]"),
    ('return np.concatenate((X, D))', "E310 1:1 the output 'R' is float, but the value is double | convert it: .astype(np.float32)"),
    ('return np.stack((S, C3))', 'E320 1:8 the first array has the shape [3 4], but the value has [3]'),
    ('return np.split(S, 2)', 'E324 1:8 3 elements cannot be split into 2 equal parts'),
    ('return np.split(S, a)', 'E326 1:8 the parts of np.split are a number, or a list of indices, known when the body is compiled'),
    ('return np.roll(X, n)', 'E326 1:8 the shift of np.roll is a number that is known when the body is compiled'),
    ('return np.roll(S, (1, 2), axis=0)', 'E321 1:8 2 shifts are given for 1 axes'),
    ('return np.broadcast_to(S, (3, 5))', 'E320 1:8 the shapes [3 4] and [3 5] do not fit together | axes are compared from the last one on: each pair is equal, or one of them is 1'),
    ('return np.broadcast_to(X, 3)', 'E320 1:8 [M N] cannot be broadcast to [3]'),
    ('return np.arange(a)', 'E326 1:8 the bounds of np.arange are numbers and sizes that are known at entry'),
    ('return np.arange(0, 3, 0)', 'E326 1:8 the step of np.arange is a number other than 0 that is known when the body is compiled'),
    ('return np.full((M, N), X)', 'E322 1:8 np.full takes a number, not an array | np.broadcast_to(array, shape) repeats one'),
    ('return np.zeros(a)', "E322 1:8 the argument 'shape' of np.zeros is a shape: numbers and arithmetic over sizes, not a scalar | it must be known when the body is compiled"),
    ('return np.zeros((M, N), "flot")', "E322 1:8 the argument 'dtype' of np.zeros is an element type, not the text 'flot'"),
    ('return np.array([X, np.sum])', 'E322 1:8 np.array takes numbers and arrays in lists, not a function'),
    ('return np.array([[1, 2], [3]])', 'E320 1:8 the parts of this list have different shapes, (1,) and (2,)'),
    ('return np.linspace(X, 1, 5)', 'E322 1:8 the ends of np.linspace are numbers'),
    ('return np.eye(a)', "E322 1:8 the argument 'N' of np.eye is a number or arithmetic over sizes, not a scalar | it must be known when the body is compiled"),
    ('return np.tril(v)', 'E330 1:8 a matrix is needed here, but the array has the shape [N]'),
    ('return np.diagonal(S)', 'E320 1:8 the diagonal is that of a square matrix, not of [3 4]'),
    ('return v.mT', 'E330 1:8 a matrix is needed here, but the array has the shape [N]'),
    ('if X > 0: R = X', 'E326 1:4 whether elements of an array are true is not known when the body is compiled | np.where(condition, a, b) chooses element by element; & | ~ combine conditions'),
    ('R = X if a > 0 else Y', 'E326 1:10 this condition is not known when the body is compiled | np.where(condition, a, b) chooses at the call'),
    ('return X if M > N else Y', 'E326 1:13 this condition is not known when the body is compiled | np.where(condition, a, b) chooses at the call'),
    ('return X and Y', 'E326 1:8 whether elements of an array are true is not known when the body is compiled | np.where(condition, a, b) chooses element by element; & | ~ combine conditions'),
    ('return not X', 'E326 1:12 whether elements of an array are true is not known when the body is compiled | np.where(condition, a, b) chooses element by element; & | ~ combine conditions'),
    ('return 0 < X < 1', 'E326 1:8 a chain of comparisons needs numbers that are known | write (a < b) & (b < c) for arrays'),
    ('return max(X, Y)', 'E326 1:8 which array is the max is not known when the body is compiled | np.maximum(a, b) compares element by element, np.max(x) is the max of one array'),
    ('return sum(X)', 'E322 1:8 sum takes a list; np.sum adds the elements of an array, not an array of the shape [M N]'),
    ('return len(a) * X', 'E322 1:8 len takes an array or a list, not a scalar'),
    ('return X in (1, 2)', "E326 1:8 'in' looks for a number, not for an array of the shape [M N] | np.isin looks for each element"),
    ('for x in a: pass', 'E326 1:10 the number of items of a scalar is not known when the body is compiled'),
    ('return [x for x in range(N)]', 'E326 1:20 the number of items of a range over sizes is not known when the body is compiled'),
    ('for k in range(3, 0, 0): pass', 'E231 1:10 the step of this loop is 0 | a negative step counts down'),
    ('a, b = 1, 2, 3', 'E229 1:1 3 values for 2 names'),
    ('a, b = X', 'E326 1:8 the number of items of an array of the shape [M N] is not known when the body is compiled'),
    ('return f(X)', "E220 1:8 there is no 'f' here | known here: M, N, K, X, Y, D, v, A, W, S, C3, C4, …, np, len, range, max, min, sum, …; caten ops lists the functions of the library, docs/language.md those of NumPy"),
    ('return (lambda x: x)(X, Y)', 'E322 1:8 this lambda takes 1 argument, not 2 | this lambda(x)'),
    ('return X()', 'E221 1:8 an array of the shape [M N] is no function'),
    ('return (1)(2)', 'E221 1:8 the number 1 is no function'),
    ('return 1 / 0 * X', 'E304 1:10 / of 1, 0: division by zero'),
    ('return Q - Q', 'E304 1:10 - is not defined on bool | of two bools, x ^ y says whether they differ; to count, convert it first: x.astype(np.int64)'),
    ('return -Q', 'E304 1:8 - is not defined on bool | of a bool, ~x is the opposite; to count, convert it first: x.astype(np.int64)'),
    ('return X << 2', 'E304 1:10 << is not defined on float | it is for integers'),
    ('return X ** Y ** J', "E310 1:1 the output 'R' is float, but the value is double | convert it: .astype(np.float32)"),
    ('return X.astype("flot")', "E322 1:8 the argument 'dtype' of .astype is an element type, not the text 'flot'"),
    ('return X.astype(np.float32, 3)', 'E322 1:8 .astype takes at most 2 arguments, not 3 | .astype(x, dtype)'),
    ('return np.float32(X, Y)', 'E322 1:8 a conversion takes one number or array'),
    ('return X.foo', "E221 1:8 An array of the shape [M N] has no '.foo' | arrays have T, mT, shape, ndim, size, real, imag, all, any, argmax, argmin, clip, …"),
    ('return a.sum().shape.foo', "E221 1:8 A tuple has no '.foo' | arrays have T, mT, shape, ndim, size, real, imag, all, any, argmax, argmin, clip, …"),
    ('return np.newaxis.foo', "E221 1:8 None has no '.foo' | arrays have T, mT, shape, ndim, size, real, imag, all, any, argmax, argmin, clip, …"),
    ('return np.take(X, 9999)', "E320 1:1 the output 'R' has the shape [M N], but the value has [] | R[...] = value repeats it along the axes that it lacks"),
    ('return np.take(S, 9, axis=0)', 'E323 1:8 the index 9 is outside axis 0 of [3 4]'),
    ('return np.repeat(X, n)', "E322 1:8 the argument 'repeats' of np.repeat is a number or arithmetic over sizes, not a scalar | it must be known when the body is compiled"),
    ('return np.tile(X, n)', "E322 1:8 the argument 'reps' of np.tile is a shape: numbers and arithmetic over sizes, not a scalar | it must be known when the body is compiled"),
    ('return np.int64(X)', "E310 1:1 the output 'R' is float, but the value is int64 | convert it: .astype(np.float32)"),
    ('f = lambda x: f(x)', "E228 1:1 the output 'R' is never written | assign it, or take it off the outputs"),
    ('f = lambda x: x', "E228 1:1 the output 'R' is never written | assign it, or take it off the outputs"),
    ('return np.moveaxis(X, (0, 1), 0)', 'E321 1:8 2 axes cannot move to 1 places'),
    ('return np.swapaxes(X, 0, 5)', 'E321 1:8 there is no axis 5: the array has 2 axes | axes are counted from 0, or from the end: -1 is the last of 2'),
    ('return np.expand_dims(X, 5)', 'E321 1:8 there is no axis 5: the result has 3 axes | axes are counted from 0, or from the end: -1 is the last of 3'),
    ('return np.where(Q)', "E322 1:8 np.where lacks its argument 'x' | np.where(condition, x, y)"),
    ('return np.dot(S, S)', 'E320 1:8 the shapes [3 4] and [3 4] do not fit together in np.dot | axis 0 of [3 4] meets one of another extent'),
    ('return np.outer(S)', "E322 1:8 np.outer lacks its argument 'b' | np.outer(a, b)"),
    ('return X.dtype', "E322 1:1 the output 'R' is an array, not an element type"),
    ('return np', "E322 1:1 the output 'R' is an array, not a module"),
    ('return [X, Y]', 'E229 1:1 2 values are returned for 1 output | the outputs are R'),
    ('return X[1:3.5]', 'E326 1:10 the bounds of a slice are numbers and sizes that are known at entry | an index may be an element of an array, a bound may not'),
    ('return slice(1, 2, 3, 4)', 'E322 1:8 slice takes one to three integers, not the number 1 and the number 2 and the number 3 and the number 4'),
    ('return range(X)', "E322 1:1 the output 'R' is an array, not a range over sizes"),
    ('return -"a"', "E322 1:9 an array or a number is needed here, not the text 'a'"),
    ('return X + "a"', "E322 1:12 an array or a number is needed here, not the text 'a'"),
    ('return X + (1, 2)', "E310 1:1 the output 'R' is float, but the value is double | convert it: .astype(np.float32)"),
    ('return X + None', 'E322 1:12 an array or a number is needed here, not None'),
    ('return X * [1.0, 2.0]', "E310 1:1 the output 'R' is float, but the value is double | convert it: .astype(np.float32)"),
    ('x: int = 3', "E228 1:1 the output 'R' is never written | assign it, or take it off the outputs"),
    ('global x', "E244 1:1 a body cannot use 'global'"),
    ('assert X', 'E244 1:8 an assertion of a body is on sizes and on what is known when it is compiled'),
    ('assert M < 0', 'E326 1:8 this assertion never holds'), ('assert 2 < 1', 'E326 1:8 this assertion does not hold'),
    ('return v.reshape((N, N))', 'E324 1:8 [N] cannot be reshaped to [N N]: the numbers of elements differ where N is greater than 1'),
    ('return np.zeros((2, N, N)).reshape(3 * N)', 'E324 1:8 [2 N N] cannot be reshaped to [(* 3 N)]: the numbers of elements differ where N is greater than 1'),
    ('return X.reshape(M * N + 1)', 'E324 1:8 [M N] cannot be reshaped to [(+ (* M N) 1)]: the numbers of elements differ'),
    ('return np.sum(*X)', 'E326 1:16 the number of items of an array of the shape [M N] is not known when the body is compiled'),
    ('return np.sum(**X)', 'E244 1:8 a body cannot use ** in a call'),
    ('return np.isfinite(J)', "E310 1:1 the output 'R' is float, but the value is bool | convert it: .astype(np.float32)"),
    ('return int(X)', "E310 1:1 the output 'R' is float, but the value is int64 | convert it: .astype(np.float32)"),
    ('return np.logical_and(X, "a")', "E322 1:8 the argument 'x2' of np.logical_and is an array or a number, not the text 'a'"),
    ('return X == None', 'E322 1:8 an array or a number is needed here, not None'),
    ('return X is None', "E310 1:1 the output 'R' is float, but the value is bool | convert it: .astype(np.float32)"),
    ('return np.round(X, a)', "E322 1:8 the argument 'decimals' of np.round is an integer, not a scalar | it must be known when the body is compiled"),
    ('return np.var(X, ddof=a)', "E322 1:8 the argument 'ddof' of np.var is an integer, not a scalar | it must be known when the body is compiled"),
    ('print(X)', "E220 1:1 bodies are compiled, not executed: there is no print | caten ops lists the functions of the library, docs/language.md those of NumPy"),
    ('return eval(X)', "E220 1:8 bodies are compiled, not executed: there is no eval | caten ops lists the functions of the library, docs/language.md those of NumPy"),
    ('return np.soft(X)', "E221 1:8 there is no np.soft in a body | did you mean 'sort'? caten ops lists the functions of the library, docs/language.md those of NumPy"),
    ('return np.sinn(X)', "E221 1:8 there is no np.sinn in a body | did you mean 'sin'? caten ops lists the functions of the library, docs/language.md those of NumPy"),
    ('return np.arctna(X)', "E221 1:8 there is no np.arctna in a body | did you mean 'arctan'? caten ops lists the functions of the library, docs/language.md those of NumPy"),
    ('return np.arct(X)', "E221 1:8 there is no np.arct in a body | did you mean 'arctan', 'arctan2' or 'arctanh'? caten ops lists the functions of the library, docs/language.md those of NumPy"),
    ('return torch.exp(X)', "E220 1:8 there is no 'torch' here | known here: M, N, K, X, Y, D, v, A, W, S, C3, C4, …, np, len, range, max, min, sum, …; caten ops lists the functions of the library, docs/language.md those of NumPy"),
]
LISP = [
    ('(setf R (relu6 X))', "E221 1:9 there is no function or statement 'relu6' | did you mean 'relu'?"),
    ('(setf R (exp X Y))', 'E222 1:9 (exp …) takes 1, not 2 | write (exp a)'),
    ('(setf R (+ X D))', 'E301 1:9 (+ …) has operands of different types, float and double | convert one of them: (cast float …)'),
    ('(setf X 1)', 'E225 1:7 \'X\' is an input and no output: it cannot be changed | take a new name, or list "X" among the outputs'),
    ('(incf R 1)', "E227 1:7 this reads the output 'R', which is no input, before anything sets it | (setf R 0) first, or list it among the inputs too if it comes from the caller"),
    ('(setf Z 1)', "E220 1:7 there is no 'Z' here | known here: M, N, K, X, Y, D, v, A, W, S"),
    ('(setf N 3)', "E226 1:7 'N' is a size and cannot be assigned | take a local instead: (set x N)"),
    ('(+ X 1)', 'E224 1:1 the value of (+ …) is not used | store it, (setf place value), or name it, (set x value)'),
    ('(foo X)', "E221 1:1 there is no function or statement 'foo' | did you mean 'floor'?"),
    ('(return X Y)', 'E229 1:1 2 values are returned for 1 output | the outputs are R'),
    ('(setf R (sum X :axis 3))', 'E321 1:9 there is no axis 3: the array has 2 axes | axes are counted from 0, or from the end: -1 is the last of 2'),
    ('(setf R (sum X :axes 3))', "E322 1:9 np.sum has no argument 'axes' | did you mean 'axis'?"),
    ('(setf R (cond ((< X 0) 1)))', 'E222 1:9 as a value, a clause of (cond …) has a condition and one value | (cond (condition value) … (t value))'),
    ('(setf R (cast X float))', "E309 1:15 'X' is not an element type | an element type such as float, double, int32 or bool"),
    ('(setf R (let (x 1) x))', 'E223 1:9 expected a list of bindings and a value here | write (let ((x e) …) value)'),
    ('(setf R (partition X))', 'E327 1:9 (partition …) is not supported yet in expressions over whole arrays | loops over elements can compute it'),
    ('(while t)', "E240 1:1 there is no 'while': every loop runs a number of times that is known when it starts"),
    ('(setf R (/ J 2))', 'E303 1:9 / divides floats, but its operands are int32 | (floordiv a b) rounds down; (/ (cast float a) (cast float b)) keeps the fraction'),
    ('(setf R v w)', 'E222 1:1 (setf …) takes pairs of a place and a value | write (setf Z value)'),
    ('(setf R)', 'E222 1:1 (setf …) takes pairs of a place and a value | write (setf Z value)'),
    ('', 'E230 1:1 the body is empty | write what the operator does: (setf Y (* 2 X))'),
    ('(setf R (where X 1 2))', 'E305 1:9 the condition of (where …) is a float, not a bool | compare it: (/= x 0)'),
    ('(setf R (< X 1 2))', "E310 1:9 'R' is float, but the value is bool | convert it: (cast float …)"),
    ('(setf (+ X 1) 2)', 'E223 1:7 expected the name of an output or a local here | (setf Z value)'),
    ('(setf R ())', 'E223 1:9 expected (function operand …) here'),
    ('(setf R (if (< a 0) X))', 'E222 1:9 (if condition a b) takes 3 parts, not 2'),
    ('(return 1) (setf R 1)', 'E229 1:1 (return …) may only stand at the end of a body'),
]


def refusal(code: str, lang: str) -> str:
    """How a body is refused."""
    with pytest.raises(CatenError) as problem:
        evaluated(SIGNATURE, code, lang=lang)
    found = problem.value.diagnostics[0]
    assert found.place is not None
    return f"{found.code} {found.place.line}:{found.place.column} {found.message}" + (f" | {found.hint}" if found.hint else "")


@pytest.mark.parametrize(("code", "expected"), PYTHON)
def test_python(code: str, expected: str) -> None:
    assert refusal(code, "python") == expected


@pytest.mark.parametrize(("code", "expected"), LISP)
def test_lisp(code: str, expected: str) -> None:
    assert refusal(code, "lisp") == expected


@pytest.mark.parametrize("code", ["return exp(X", "return X +", "try: pass", "  R = X\nR = Y", "x = = 1"])
def test_what_is_no_python(code: str) -> None:
    assert refusal(code, "python").startswith("E243 ")


@pytest.mark.parametrize(("code", "expected"), [
    ("f = lambda x: f(x)\nreturn f(X)", ["E233 1:15 this lambda calls itself"]), ("def f(x):\n    return f(x)\nreturn f(X)", ["E233 2:12 f calls itself"]),
    ("def f(x, n):\n    return x if n == 0 else f(x, n - 1)\nreturn f(X, 9_999)", ["E233 2:29 f calls itself"]),
    ("def f(x):\n    return g(x)\ndef g(x):\n    return 1 + f(x)\nreturn f(X)", ["E233 2:12 g calls f calls g", "E233 4:16 f calls g calls f"])])
def test_functions_that_call_themselves_without_end(code: str, expected: list[str]) -> None:
    """Where the stack ends decides which of two functions is named first."""
    assert refusal(code, "python") in [f"{each}: this recursion has no end, or is too deep | write a loop" for each in expected]


def test_a_recursion_that_ends_is_none_of_them() -> None:
    evaluated(SIGNATURE, "def f(x, n):\n    return x if n == 0 else f(x, n - 1) + 1\nreturn f(X, 9)", lang="python")


@pytest.mark.parametrize("code", ["R = " + "(" * 60 + "X" + ")" * 60 + "".join([" + X"] * 3000)])
def test_what_nests_too_deeply(code: str) -> None:
    assert refusal(code, "python")[:4] in ("E239", "E243")


def test_a_loop_that_unrolls_too_far() -> None:
    assert refusal("s = 0\nfor i in range(200):\n    for j in range(200):\n        s = s + i\nR[...] = s", "python").startswith("E239 ")


@pytest.mark.parametrize(("code", "lang"), [("for i in range(N): R[i] = v", "python"), ("for row in X: R = row", "python"),
                                            ("for i, row in enumerate(X): R = row", "python"), ("for i in range(40000): R = X", "python"),
                                            ("if v[0] > 0: R = X", "python"),
                                            ("(dotimes (i M) (setf (aref R i 0) 1))", "lisp"), ("(setf R (aref X 0 0))", "lisp")])
def test_loops_over_elements_are_for_another_reader(code: str, lang: str) -> None:
    with pytest.raises(NeedsLoops):
        evaluated(SIGNATURE, code, lang=lang)


def test_positions_count_characters() -> None:
    assert refusal("t = X  # größer\nu = 'é' if 0 else Z", "python").startswith("E220 2:19 ")
    assert refusal("\n    t = X\n    return t & X", "python").startswith("E304 3:14 ")
