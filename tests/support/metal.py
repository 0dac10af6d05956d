"""A stand-in for the device `mps`: its tensors lie on the CPU.

As those of torch they have no float64, are not read by numpy, and do not mix with the CPU's.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

Named = Mapping[str, Any]
MPS = torch.device("mps", 0)
NO_FLOAT64 = (
    "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. "
    "Please use float32 instead."
)
MISSING = (
    "The operator '{}' is not currently implemented for the MPS device. If you want this op to be "
    "considered for addition please comment on an issue of torch."
)
BETWEEN_DEVICES = {"aten::copy_", "aten::_to_copy", "aten::index.Tensor", "aten::index_put_"}


class MetalTensor(Tensor):
    """A tensor of the device; held: its numbers. Torch's own code takes it for one of `meta`."""

    held: Tensor

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The device that product code sees."""
        return MPS

    @staticmethod
    def __new__(cls, held: Tensor, requires_grad: bool = False) -> "MetalTensor":
        if held.dtype == torch.float64:
            raise TypeError(NO_FLOAT64)
        made: MetalTensor = torch.Tensor._make_wrapper_subclass(
            cls, held.size(), strides=held.stride(), storage_offset=held.storage_offset(),
            dtype=held.dtype, device=torch.device("meta"), requires_grad=requires_grad,
        )  # fmt: skip
        made.held = held
        return made

    def tolist(self) -> Any:
        """Its numbers: torch refuses it for tensors of other classes."""
        return self.held.tolist()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Named | None = None
    ) -> Any:
        return computed(func, args, kwargs or {}, "")


class Metal(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Context manager in which tensors can be made for `mps`; missing: an operator it lacks."""

    def __init__(self, missing: str = "") -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.missing = missing
        # parameters that are moved are new ones, as their class is another
        torch.__future__.set_overwrite_module_params_on_conversion(True)

    def __exit__(self, *fault: Any) -> None:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
        super().__exit__(*fault)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Named | None = None
    ) -> Any:
        return computed(func, args, kwargs or {}, self.missing)


def computed(func: Any, args: Sequence[Any], named: Named, missing: str) -> Any:
    """What an operator gives, on the device that it names, or that its tensors are on."""
    name, leaves = func.name(), tree_leaves((args, named))
    on_metal = any(isinstance(leaf, MetalTensor) for leaf in leaves)
    if on_metal and name.partition(".")[0] not in BETWEEN_DEVICES | {"aten::index"}:
        if missing and name.startswith(missing):
            raise NotImplementedError(MISSING.format(missing))
        others = [one for one in leaves if type(one) is Tensor and one.ndim and not one.is_meta]
        if others:
            raise RuntimeError(f"{name}: Expected all tensors to be on the same device")
    if named.get("device") is not None:
        scalar = name == "aten::scalar_tensor"  # to be assigned, without the tensor it goes to
        on_metal = named["device"].type in ("mps", *(["meta"] if on_metal or scalar else []))
        named = {**named, "device": torch.device("cpu") if on_metal else named["device"]}
    if name == "aten::copy_":
        on_metal = isinstance(args[0], MetalTensor)
    if on_metal or any(isinstance(leaf, MetalTensor) for leaf in leaves):
        args, named = tree_map(_held, (tuple(args), dict(named)))
    result = func(*args, **named)
    made = lambda one: MetalTensor(one) if isinstance(one, Tensor) else one  # noqa: E731
    return tree_map(made, result) if on_metal else result


def _held(value: Any) -> Any:
    """Numbers of a tensor; those of `meta` are the gradients of 0 that torch itself makes."""
    if type(value) is Tensor and value.is_meta:
        return torch.zeros(value.shape, dtype=value.dtype)
    return value.held if isinstance(value, MetalTensor) else value
