"""FunctionSet: the container of links of Chainer 1."""
from catena import _core
from catena.link import Chain, Link

__all__ = ["FunctionSet"]


class FunctionSet(Chain):
    """Links with names. Each link that is assigned to an attribute becomes a child.

    Args:
        functions: names of children with the links.
    """

    def __init__(self, **functions):
        super().__init__(**functions)

    def __setattr__(self, name, value):
        if isinstance(value, Link) and not self._within_init_scope:
            if name in self._children:
                delattr(self, name)
            self.add_link(name, value)
        else:
            super().__setattr__(name, value)

    def _sorted(self):
        return [parameter for _, parameter in sorted(self.namedparams())]

    def __iter__(self):
        """The parameters and the gradients, which are a pair in Chainer 1.0."""
        return iter((self.parameters, self.gradients))

    def collect_parameters(self):
        """The set itself, which optimizers take. It can be unpacked into parameters and gradients."""
        return self

    @property
    def parameters(self):
        """The arrays of all parameters, sorted by path. They can be assigned, without a copy."""
        return tuple(parameter.array for parameter in self._sorted())

    @parameters.setter
    def parameters(self, arrays):
        for parameter, array in zip(self._sorted(), arrays, strict=True):
            parameter.array = array

    @property
    def gradients(self):
        """The gradients of all parameters, in the same order. They can be assigned."""
        return tuple(parameter.grad for parameter in self._sorted())

    @gradients.setter
    def gradients(self, arrays):
        for parameter, array in zip(self._sorted(), arrays, strict=True):
            parameter.grad = array

    def copy_parameters_from(self, params):
        """Copies the elements of arrays, in the order of ``parameters``, also between devices."""
        for parameter, source in zip(self._sorted(), params, strict=True):
            parameter._array.copy_from(_core.as_array(source))
