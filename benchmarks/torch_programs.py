"""The benchmark modules as a PyTorch user would write them, for the peers torch, inductor, onnxruntime and openvino.

`PROGRAMS[name]` is the function of a module's arguments; modules that PyTorch has no natural form of are not there.
Images keep the module's NHWC memory (channels last to PyTorch); kernels are brought into PyTorch's layout before
anything is timed. Imports torch.
"""

# pyright: reportMissingImports=false, reportPrivateImportUsage=false
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812

Tensor = Any
HEAD = 64
IMAGES = ("resnet", "mobilenet", "conv", "dwconv")


def tensors(name: str, arrays: list[Any]) -> list[Tensor]:
    """The arguments as tensors over the same memory; where there are convolutions, an image NHWC as NCHW with channels
    last (the same memory again), and kernels HWIO as OIHW, copied."""
    found = [_tensor(a) for a in arrays]
    if not name.startswith(IMAGES):
        return found
    first, *rest = found
    kernels = (w.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last) if w.ndim == 4 else w for w in rest)
    return [first.permute(0, 3, 1, 2), *kernels]


def arrays(name: str, result: Any) -> list[np.ndarray]:
    """What a program gave, in the module's layouts."""
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    if name.startswith(IMAGES):
        orders = ((2, 3, 1, 0) if i else (0, 2, 3, 1) for i in range(len(results)))
        results = [r.permute(*o) if r.ndim == 4 else r for r, o in zip(results, orders, strict=True)]
    return [_array(r) for r in results]


def _tensor(array: np.ndarray) -> Tensor:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _array(t: Tensor) -> np.ndarray:
    if t.dtype == torch.bfloat16:
        return t.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return t.detach().numpy()


# ---- networks


def _norm(x: Tensor, args: Iterator[Tensor]) -> Tensor:
    scale, offset, mean, variance = (next(args) for _ in range(4))
    return F.batch_norm(x, mean, variance, scale, offset, eps=1e-5)


def resnet50(x: Tensor, *weights: Tensor) -> Tensor:
    args = iter(weights)
    x = F.relu(_norm(F.conv2d(x, next(args), stride=2, padding=3), args))
    x = F.max_pool2d(x, 3, 2, 1)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            y = F.relu(_norm(F.conv2d(x, next(args)), args))
            y = F.relu(_norm(F.conv2d(y, next(args), stride=stride, padding=1), args))
            y = _norm(F.conv2d(y, next(args)), args)
            x = F.relu(y + (x if block else _norm(F.conv2d(x, next(args), stride=stride), args)))
    return x.mean((2, 3)) @ next(args) + next(args)


MOBILENET = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def mobilenet(x: Tensor, *weights: Tensor) -> Tensor:
    args = iter(weights)
    x = F.relu6(_norm(F.conv2d(x, next(args), stride=2, padding=1), args))
    for expand, channels, blocks, first in MOBILENET:
        for block in range(blocks):
            stride = first if not block else 1
            y = F.relu6(_norm(F.conv2d(x, next(args)), args)) if expand > 1 else x
            w = next(args)
            y = F.relu6(_norm(F.conv2d(y, w, stride=stride, padding=1, groups=w.shape[0]), args))
            y = _norm(F.conv2d(y, next(args)), args)
            x = x + y if stride == 1 and x.shape[1] == channels else y
    x = F.relu6(_norm(F.conv2d(x, next(args)), args))
    return x.mean((2, 3)) @ next(args) + next(args)


def resnet18_loss(x: Tensor, labels: Tensor, weights: list[Tensor]) -> Tensor:
    args = iter(weights)

    def norm(v: Tensor) -> Tensor:
        return F.batch_norm(v, None, None, next(args), next(args), training=True, eps=1e-5)

    x = F.relu(norm(F.conv2d(x, next(args), stride=2, padding=3)))
    x = F.max_pool2d(x, 3, 2, 1)
    for stage in range(4):
        for block in range(2):
            stride = 2 if stage and not block else 1
            y = F.relu(norm(F.conv2d(x, next(args), stride=stride, padding=1)))
            y = norm(F.conv2d(y, next(args), padding=1))
            x = F.relu(y + (norm(F.conv2d(x, next(args), stride=2)) if stride == 2 else x))
    return F.cross_entropy(x.mean((2, 3)) @ next(args) + next(args), labels)


def resnet18_train(x: Tensor, labels: Tensor, *weights: Tensor) -> Any:
    loss, grads = _gradients(lambda p: resnet18_loss(x, labels.long(), p), weights)
    with torch.no_grad():
        return [loss, *torch._foreach_sub(list(weights), torch._foreach_mul(grads, 0.01))]


def _heads(x: Tensor, qkv: Tensor, causal: bool) -> Tensor:
    b, s, w = x.shape
    q, k, v = qkv.view(b, s, 3, w // HEAD, HEAD).permute(2, 0, 3, 1, 4)
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).reshape(b, s, w)


def bert(ids: Tensor, words: Tensor, places: Tensor, kinds: Tensor, *weights: Tensor) -> Tensor:
    args = iter(weights)
    width = words.shape[1]

    def norm(v: Tensor) -> Tensor:
        return F.layer_norm(v, (width,), next(args), next(args), 1e-12)

    x = norm(F.embedding(ids, words) + places[: ids.shape[1]] + kinds[0])
    for _ in range(12):
        qkv = x @ next(args) + next(args)
        x = norm(x + _heads(x, qkv, False) @ next(args) + next(args))
        h = F.gelu(x @ next(args) + next(args))
        x = norm(x + h @ next(args) + next(args))
    return x


def gpt2_decode(token: Tensor, place: Tensor, *rest: Tensor) -> Any:
    """One token with caches of keys and values, which are arguments and results."""
    caches, args = list(rest[:24]), iter(rest[24:])
    words, places = next(args), next(args)
    x = F.embedding(token, words) + places[place]
    mask = torch.arange(256) <= place

    def norm(v: Tensor) -> Tensor:
        return F.layer_norm(v, (768,), next(args), next(args), 1e-5)

    kept = []
    for layer in range(12):
        q, k, v = (norm(x) @ next(args) + next(args)).view(3, 12, 64)
        keys, values = (torch.index_copy(c, 0, place.view(1).long(), t[None])
                        for c, t in zip(caches[2 * layer : 2 * layer + 2], (k, v), strict=True))  # fmt: skip
        kept += [keys, values]
        o = F.scaled_dot_product_attention(
            q[None, :, None], keys.transpose(0, 1)[None], values.transpose(0, 1)[None], attn_mask=mask[None, None]
        )
        x = x + o.reshape(1, 768) @ next(args) + next(args)
        h = F.gelu(norm(x) @ next(args) + next(args), approximate="tanh")
        x = x + h @ next(args) + next(args)
    return [norm(x) @ words.T, *kept]


def transformer_loss(ids: Tensor, labels: Tensor, weights: list[Tensor]) -> Tensor:
    args = iter(weights)
    words, places = next(args), next(args)
    x = F.embedding(ids, words) + places

    def norm(v: Tensor) -> Tensor:
        return F.layer_norm(v, (256,), next(args), next(args), 1e-5)

    for _ in range(4):
        h = norm(x)
        x = x + _heads(h, h @ next(args) + next(args), True) @ next(args) + next(args)
        h = F.gelu(norm(x) @ next(args) + next(args), approximate="tanh")
        x = x + h @ next(args) + next(args)
    return F.cross_entropy((norm(x) @ words.T).flatten(0, 1), labels.flatten())


# ---- training


def _gradients(loss_of: Callable[[list[Tensor]], Tensor], weights: Any) -> tuple[Tensor, list[Tensor]]:
    parameters = [w.detach().requires_grad_() for w in weights]
    loss = loss_of(parameters)
    return loss.detach(), list(torch.autograd.grad(loss, parameters))


def adam_training(loss_of: Callable[[Tensor, Tensor, list[Tensor]], Tensor]) -> Callable[..., Any]:
    """A step of Adam as the modules compute it: weights, then first moments, then second ones, then the count."""

    def step(x: Tensor, labels: Tensor, *rest: Tensor) -> Any:
        n = (len(rest) - 1) // 3
        w, m, v, t = list(rest[:n]), rest[n : 2 * n], rest[2 * n : 3 * n], rest[-1] + 1
        loss, g = _gradients(lambda p: loss_of(x, labels.long(), p), w)
        with torch.no_grad():
            rate = 1e-3 * torch.sqrt(1 - 0.999**t) / (1 - 0.9**t)
            m = torch._foreach_add(torch._foreach_mul(list(m), 0.9), g, alpha=0.1)
            v = torch._foreach_addcmul(torch._foreach_mul(list(v), 0.999), g, g, value=1e-3)
            d = torch._foreach_add(torch._foreach_sqrt(v), 1e-7)
            step = torch._foreach_div(torch._foreach_mul(m, rate), d)
            return [loss, *torch._foreach_sub(w, step), *m, *v, t]

    return step


def mnist_loss(x: Tensor, labels: Tensor, p: list[Tensor]) -> Tensor:
    return F.cross_entropy(x @ p[0] + p[1], labels)


def mlp_loss(x: Tensor, labels: Tensor, p: list[Tensor]) -> Tensor:
    h = F.relu(x @ p[0] + p[1])
    h = F.relu(h @ p[2] + p[3])
    return F.cross_entropy(h @ p[4] + p[5], labels)


# ---- kernels


def gelu_chain(x: Tensor, y: Tensor) -> Tensor:
    return F.gelu(x * y + 0.5, approximate="tanh") * x


def adam(w: Tensor, g: Tensor, m: Tensor, v: Tensor) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return [w - 1e-3 * m / (torch.sqrt(v) + 1e-8), m, v]


def block(x: Tensor, wq: Tensor, wo: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    s, w = x.shape
    q, k, v = (F.layer_norm(x, (w,)) @ wq).view(s, 3, 6, w // 6).permute(1, 2, 0, 3)
    o = F.scaled_dot_product_attention(q[None], k[None], v[None])[0]
    x = x + o.transpose(0, 1).reshape(s, w) @ wo
    return x + F.gelu(F.layer_norm(x, (w,)) @ w1, approximate="tanh") @ w2


def standardize_gradients(x: Tensor, g: Tensor) -> Any:
    x, g = x.detach().requires_grad_(), g.detach().requires_grad_()
    y = (F.layer_norm(x, x.shape[1:]) * g).sum()
    return list(torch.autograd.grad(y, (x, g)))


def kmeans(x: Tensor, c: Tensor) -> Tensor:
    for _ in range(10):
        d = (x * x).sum(1, keepdim=True) - 2 * x @ c.T + (c * c).sum(1)
        near = F.one_hot(d.argmin(1), c.shape[0]).to(x.dtype)
        c = (near.T @ x) / torch.clamp(near.sum(0)[:, None], min=1)
    return c


def conjugate_gradients(a: Tensor, b: Tensor) -> Any:
    x, r, p, i, rr = torch.zeros_like(b), b, b, 0, b @ b
    while i < 200 and rr > 1e-10:
        q = a.T @ (a @ p) / 512 + p
        alpha = rr / (p @ q)
        x, r = x + alpha * p, r - alpha * q
        new = r @ r
        p, rr, i = r + (new / rr) * p, new, i + 1
    return [x, torch.tensor(i, dtype=torch.int32)]


def _conv(x: Tensor, w: Tensor) -> Tensor:
    return F.conv2d(x, w, padding=1, groups=x.shape[1] // w.shape[1])


PROGRAMS: dict[str, Callable[..., Any]] = {
    "mnist_dense_step": adam_training(mnist_loss),
    "mlp_step": adam_training(mlp_loss),
    "transformer_train": adam_training(transformer_loss),
    "resnet18_train_b8_64": resnet18_train,
    "resnet50_b1": resnet50,
    "mobilenet_v2_b1": mobilenet,
    "bert_base_b1_s128": bert,
    "gpt2_decode_kv256": gpt2_decode,
    "while_cg_512": conjugate_gradients,
    "sort_1m": lambda x: torch.sort(x)[0],
    "sort_4k": lambda x: torch.sort(x)[0],
    "cumsum_16m_1d": lambda x: torch.cumsum(x, 0),
    "softmax_4096": lambda x: torch.softmax(x, -1),
    "layernorm_4096x1024": lambda x, g, b: F.layer_norm(x, x.shape[1:], g, b, 1e-5),
    "gelu_chain_16m": gelu_chain,
    "axpy_16m": lambda x, y: 2 * x + y,
    "exp_16m": lambda x: torch.exp(x),
    "reduce_64m_ax1": lambda x: x.sum(1),
    "reduce_64m_all": lambda x: x.sum(),
    "transpose_4096": lambda x: x.T.contiguous(),
    "gather_embed": lambda t, i: F.embedding(i, t),
    "scatter_add": lambda t, i, u: torch.index_add(t, 0, i, u),
    "fft_2p20": lambda x: torch.fft.fft(x),
    "cholesky_512": lambda x: torch.linalg.cholesky(x),
    "bmm_64x256x256x64": lambda a, b: torch.bmm(a, b),
    "matmul_i8_1024": lambda a, b: torch._int_mm(a, b),
    "dwconv3x3_c144_56": _conv,
    "attention_h12_s1024_d64": lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
    "add_1x1": lambda a, b: a + b,
    "softmax_1003x777": lambda x: torch.softmax(x, -1),
    "softmax_axis0_777x1003": lambda x: torch.softmax(x, 0),
    "layernorm_grad_511x769": standardize_gradients,
    "column_sum_30011x67": lambda x: x.sum(0),
    "middle_sum_61x1021x33": lambda x: x.sum(1),
    "argmax_999x1001": lambda x: torch.argmax(x, -1).int(),
    "gelu_bias_1023x3073": lambda x, b: F.gelu(x + b),
    "adam_1000003": adam,
    "matmul_1000x1000_nt": lambda a, b: a @ b.T,
    "transpose_0213_32x65x33x64": lambda x: x.permute(0, 2, 1, 3).contiguous(),
    "take_rows_20011": lambda t, i: F.embedding(i, t) * 2,
    "transformer_block_77x384": block,
    "kmeans_4001x17": kmeans,
    **{f"conv3x3_{n}": _conv for n in ("c64_56", "c128_28", "c512_7")},
    **{
        f"mat{n}": lambda a, b: a @ b
        for n in ("mul_64", "mul_128", "mul_256", "mul_512", "mul_1024", "mul_2048", "mul_4096", "mul_8x4096",
                  "vec_1x4096", "mul_bf16_1024", "mul_37x511x129")
    },
}  # fmt: skip
