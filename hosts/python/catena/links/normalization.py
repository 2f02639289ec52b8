"""Links that normalize."""
import math
from typing import Any

from catena import functions as F
from catena.configuration import config, get_dtype
from catena.initializers import _get_initializer, generate_array
from catena.link import Link
from catena.variable import Parameter

__all__ = ["BatchNormalization", "BatchRenormalization", "GroupNormalization", "LayerNormalization",
           "RMSNormalization"]


def _of_dtype(initial, default, dtype):
    """An initializer for arrays of the dtype."""
    initializer = _get_initializer(initial, default)
    initializer.dtype = dtype
    return initializer


class BatchNormalization(Link):
    """Normalizes each channel by the statistics of the batch in training, else by running ones.

    y = gamma (x - mean) / sqrt(var + eps) + beta. The running statistics are persistent values:
    avg_mean, avg_var and N, the number of batches of fine-tuning.

    Args:
        size: the number of channels, or the shape of gamma and beta. With ``axis`` it can be taken
            from the first call.
        decay: the share of the running statistics that a batch leaves as it is.
        eps: added to the variance.
        dtype: that of the parameters; by default config.dtype, or float32 for mixed16.
        use_gamma, use_beta: whether there are gamma and beta; else they are 1 and 0.
        initial_gamma, initial_beta: initializers, arrays or numbers; by default 1 and 0.
        initial_avg_mean, initial_avg_var: the same for the running statistics; by default 0 and 1.
        axis: the axes over which the statistics are computed; by default all that gamma lacks.
    """

    gamma: Any = None
    beta: Any = None

    def __init__(self, size=None, decay=0.9, eps=2e-5, dtype=None, use_gamma=True, use_beta=True,
                 initial_gamma=None, initial_beta=None, axis=None, initial_avg_mean=None,
                 initial_avg_var=None) -> None:
        super().__init__()
        if size is None and axis is None:
            raise RuntimeError("size or axis is required")
        self._initial_averages = _get_initializer(initial_avg_mean, 0), _get_initializer(initial_avg_var, 1)
        self.decay = decay
        self.eps = eps
        self.axis = (axis,) if isinstance(axis, int) else axis
        self._dtype = get_dtype(dtype, map_mixed16="float32")
        with self.init_scope():
            if use_gamma:
                self.gamma = Parameter(_of_dtype(initial_gamma, 1, self._dtype))
            if use_beta:
                self.beta = Parameter(_of_dtype(initial_beta, 0, self._dtype))
        self.N = 0
        self.avg_mean = self.avg_var = None
        if size is not None:
            self._initialize_params(size)
        for name in ["N", "avg_mean", "avg_var"]:
            self.register_persistent(name)

    def _array(self, initial, shape):
        return generate_array(_get_initializer(initial), shape, dtype=self._dtype,
                              device=self.device)

    def _initialize_params(self, shape):
        self.avg_mean, self.avg_var = (self._array(each, shape) for each in self._initial_averages)
        for parameter in (self.gamma, self.beta):
            if parameter is not None:
                parameter.initialize(shape)

    @property
    def printable_specs(self):
        yield "size", None if self.avg_mean is None else self.avg_mean.shape[0]
        for name in ["decay", "eps"]:
            yield name, getattr(self, name)
        yield "dtype", self._dtype
        yield "use_gamma", self.gamma is not None
        yield "use_beta", self.beta is not None

    def forward(self, x, *, finetune=False) -> Any:
        """Normalizes x.

        In training, ``finetune`` makes the running statistics the means of all batches since
        start_finetuning().
        """
        if self.avg_mean is None:
            self._initialize_params(tuple(n for i, n in enumerate(x.shape) if i not in self.axis))
        gamma, beta = self.gamma, self.beta
        if gamma is None:
            gamma = self._array(1, self.avg_mean.shape)
        if beta is None:
            beta = self._array(0, self.avg_mean.shape)
        if not config.train:
            return F.fixed_batch_normalization(x, gamma, beta, self.avg_mean, self.avg_var,
                                               self.eps, axis=self.axis)
        decay = self.decay
        if finetune and not config.in_recomputing:
            self.N += 1
            decay = 1.0 - 1.0 / self.N
        return self._normalize(x, gamma, beta, decay)

    def _normalize(self, x, gamma, beta, decay):
        return F.batch_normalization(
            x, gamma, beta, eps=self.eps, running_mean=self.avg_mean, running_var=self.avg_var,
            decay=decay, axis=self.axis)

    def start_finetuning(self) -> None:
        """Begins a new mean of statistics."""
        self.N = 0


class BatchRenormalization(BatchNormalization):
    """Batch normalization that is corrected towards the running statistics in training.

    The arguments are BatchNormalization's, and limits of the corrections; see F.batch_renormalization().
    """

    def __init__(self, size, rmax=1, dmax=0, decay=0.9, eps=2e-5, dtype=None, use_gamma=True,
                 use_beta=True, initial_gamma=None, initial_beta=None, initial_avg_mean=None,
                 initial_avg_var=None) -> None:
        super().__init__(size, decay, eps, dtype, use_gamma, use_beta, initial_gamma, initial_beta,
                         None, initial_avg_mean, initial_avg_var)
        self.rmax = rmax
        self.dmax = dmax

    def _normalize(self, x, gamma, beta, decay):
        mean, var = self.avg_mean, self.avg_var
        kept = config._kept_for_recomputing
        if kept is not None and config.in_recomputing:  # the result depends on the statistics
            mean, var = next(kept)
        elif kept is not None:
            kept.append((mean.copy(), var.copy()))
        return F.batch_renormalization(x, gamma, beta, self.rmax, self.dmax, self.eps, mean, var,
                                       decay, update_statistics=True)


class _Affine(Link):
    """A link with gamma and beta, whose size can depend on the first input."""

    def __init__(self, size, eps, gamma, beta) -> None:
        super().__init__()
        self.eps = eps
        with self.init_scope():
            self.gamma = Parameter(gamma)
            self.beta = Parameter(beta)
        if size is not None:
            self._initialize_params(size)

    def _initialize_params(self, size):
        self.gamma.initialize(size)
        self.beta.initialize(size)


class LayerNormalization(_Affine):
    """Normalizes each sample: y = gamma (x - mean) / sqrt(var + eps) + beta for x (N, size).

    Args:
        size: the number of elements per sample; by default taken from the first call.
        eps: added to the variance.
        initial_gamma, initial_beta: initializers, arrays or numbers; by default 1 and 0.
    """

    def __init__(self, size=None, eps=1e-6, initial_gamma=None, initial_beta=None) -> None:
        super().__init__(size, eps, 1 if initial_gamma is None else initial_gamma,
                         0 if initial_beta is None else initial_beta)

    def forward(self, x) -> Any:
        if self.gamma.array is None:
            self._initialize_params(math.prod(x.shape[1:]))
        return F.layer_normalization(x, self.gamma, self.beta, self.eps)


class RMSNormalization(Link):
    """y = gamma x / sqrt(mean of x^2 + eps), with the mean over the last axes of x.

    size is the extent of the last axis, or the shape of the last axes. initial_gamma is an initializer, an
    array or a number, by default 1.
    """

    def __init__(self, size, eps=1e-6, initial_gamma=None) -> None:
        super().__init__()
        self.eps = eps
        with self.init_scope():
            self.gamma = Parameter(_get_initializer(initial_gamma, 1), size)

    def forward(self, x) -> Any:
        return F.rms_normalization(x, self.gamma, self.eps)


class GroupNormalization(_Affine):
    """Normalizes groups of channels of each sample: y = gamma (x - mean) / sqrt(var + eps) + beta.

    Args:
        groups: the number of groups.
        size: the number of channels (axis 1); by default taken from the first call.
        eps, initial_gamma, initial_beta: see LayerNormalization.
    """

    def __init__(self, groups, size=None, eps=1e-5, initial_gamma=None, initial_beta=None) -> None:
        dtype = get_dtype(None, map_mixed16="float32")
        super().__init__(size, eps, _of_dtype(initial_gamma, 1, dtype), _of_dtype(initial_beta, 0, dtype))
        self.groups = groups

    def forward(self, x) -> Any:
        if self.gamma.array is None:
            if x.ndim < 2:
                raise ValueError("Input dimension must be at least 2, including batch size "
                                 f"dimension (first dimension), got {x.ndim}.")
            self._initialize_params(x.shape[1])
        dtype, precise = x.dtype, self.gamma.dtype
        x = x if dtype == precise else F.cast(x, precise)
        y = F.group_normalization(x, self.groups, self.gamma, self.beta, self.eps)
        return y if dtype == precise else F.cast(y, dtype)
