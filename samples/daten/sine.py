"""A sine from a polynomial, whose coefficients are found by gradient descent."""
import numpy as np

from daten import Tensor, optim

x = np.linspace(-3, 3, 200, dtype=np.float32)
powers = np.stack([x, (x / 3) ** 3, (x / 3) ** 5], axis=1)
coefficients = Tensor(np.zeros(3, np.float32), requires_grad=True)
descent = optim.SGD([coefficients], lr=0.05, momentum=0.9)

for step in range(1001):
    loss = ((Tensor(powers) @ coefficients - Tensor(np.sin(x))) ** 2).mean()
    loss.backward()
    descent.step(loss)
    if step % 200 == 0:
        print(f"step {step}: loss {loss.item():.6f}")
a, b, c = coefficients.tolist()
print(f"sin x = {a:.3f} x {b:+.3f} (x/3)³ {c:+.3f} (x/3)⁵")
