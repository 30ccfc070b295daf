"""Under the hood: the graph before compilation, the code after it."""

from __future__ import annotations

from morok import Tensor


def main() -> None:
    a = Tensor.from_slice([1.0, 2.0, 3.0])
    b = Tensor.from_slice([4.0, 5.0, 6.0])
    c = a + b

    print("=== IR Graph ===")
    print(c.uop.tree())

    result = c.realize()

    print("\n=== Generated Kernels ===")
    for i, kernel in enumerate(result.kernels()):
        print(f"Kernel {i}: {kernel.name}")
        print(f"Backend: {kernel.backend}")
        print(f"Code:\n{kernel.code}\n")


if __name__ == "__main__":
    main()
