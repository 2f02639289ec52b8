"""Link, Chain and ChainList: parameters with names, and the links that consist of links."""
import collections
import collections.abc
import contextlib
import copy
import operator
import warnings
from collections.abc import Iterator
from typing import Any

from catena import _core, link_hook
from catena.device_resident import DeviceResident
from catena.variable import Parameter


def _is_shape(value):
    try:
        return value is None or all(int(x) >= 0 for x in (
            value if isinstance(value, collections.abc.Sequence) else (value,)))
    except (TypeError, ValueError):
        return False


class Link(DeviceResident):
    """A part of a model, with parameters that have names.

    A parameter becomes one of the link's when it is assigned to an attribute within
    ``init_scope()``. Parameters and persistent values are saved and loaded by their names. A
    subclass implements ``forward()``, which calls of the link run.

    Args:
        params: names of parameters with their shapes, or tuples of shape and dtype.
    """

    name: Any = None
    _params = None
    _persistent = None
    _within_init_scope = False
    _local_link_hooks = True  # until __init__() has run: __call__() tests it only

    def __init_subclass__(cls, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        # A class that is mixed in after the link can define the call.
        later = cls.__mro__[cls.__mro__.index(Link) + 1:]
        injected = [c.__dict__["__call__"] for c in later if "__call__" in c.__dict__]
        if injected:
            cls.forward = injected[0]

    def __init__(self, **params) -> None:
        super().__init__()
        self._params = set()
        self._persistent = set()
        self._local_link_hooks = None
        for name, value in params.items():
            shape, dtype = (value, "float32") if _is_shape(value) else value
            self.add_param(name, shape, dtype=dtype)

    def _check_init_done(self):
        if self._params is None:
            raise RuntimeError("Link.__init__() has not been called.")

    def __call__(self, *args, **kwargs) -> Any:
        if self._local_link_hooks or link_hook.in_use:
            self._check_init_done()
            return link_hook.call(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def __str__(self):
        specs = ", ".join(f"{name}={value}" for name, value in self.printable_specs)
        return f"{type(self).__name__}({specs})"

    @property
    def printable_specs(self):
        """The names and values of the arguments that print() shows."""
        return iter(())

    @property
    def local_link_hooks(self):
        """The hooks of this link, by name."""
        if self._local_link_hooks is None:
            self._local_link_hooks = collections.OrderedDict()
        return self._local_link_hooks

    def add_hook(self, hook, name=None) -> Any:
        """Makes calls of this link run the hook. Returns the link."""
        if not isinstance(hook, link_hook.LinkHook):
            raise TypeError(f"Hook must be of type LinkHook, got {type(hook)}")
        name = hook.name if name is None else name
        if name in self.local_link_hooks:
            raise KeyError(f"Hook {name} already exists")
        self.local_link_hooks[name] = hook
        hook.added(self)
        return self

    def delete_hook(self, name) -> None:
        """Removes a hook from this link."""
        if name not in self.local_link_hooks:
            raise KeyError(f"Hook {name} does not exist")
        self.local_link_hooks.pop(name).deleted(self)

    # Registration.

    within_init_scope = property(operator.attrgetter("_within_init_scope"),
                                 doc="Whether assignments register parameters and links.")

    @contextlib.contextmanager
    def init_scope(self) -> Iterator[Any]:
        """In the scope, assignments to attributes register parameters and links."""
        self._check_init_done()
        before = self._within_init_scope
        self._within_init_scope = True
        try:
            yield
        finally:
            self._within_init_scope = before

    def __setattr__(self, name, value):
        if self._within_init_scope and isinstance(value, Parameter):
            value.name = name
            self._params.add(name)
            self._persistent.discard(name)
        super().__setattr__(name, value)

    def __delattr__(self, name):
        self._params.discard(name)
        self._persistent.discard(name)
        super().__delattr__(name)

    def _check_new(self, name, what):
        if name in self.__dict__:
            raise AttributeError(f"cannot register a new {what} {name}: attribute exists")

    def add_param(self, name, shape=None, dtype="float32", initializer=None) -> None:
        """Registers a new parameter. Without a shape, it has no array yet."""
        from catena import initializers
        self._check_new(name, "parameter")
        if initializer is None:
            initializer = initializers.NaN(dtype)
        with self.init_scope():
            setattr(self, name, Parameter(initializer, shape))

    def add_persistent(self, name, value) -> None:
        """Adds a value that is saved with the link."""
        self._check_new(name, "persistent value")
        super().__setattr__(name, value)
        self.register_persistent(name)

    def register_persistent(self, name) -> None:
        """Makes an attribute a value that is saved with the link."""
        if not hasattr(self, name):
            raise AttributeError(f"cannot register non-existent attribute {name} as a persistent "
                                 "value")
        self._persistent.add(name)
        self._params.discard(name)

    @classmethod
    def from_params(cls, *args, **kwargs) -> Any:
        """A link with these parameters, for the classes that implement it."""
        raise NotImplementedError(f"{cls.__name__} does not implement from_params().")

    # Traversal.

    def _named_children(self):
        """The names and links of the children, in the order of all methods."""
        return ()

    def children(self) -> Any:
        """The links of which this one consists."""
        for _, child in self._named_children():
            yield child

    def params(self, include_uninit=True) -> Any:
        """All parameters, also those of children."""
        for name in sorted(self._params):
            parameter = self.__dict__[name]
            if include_uninit or parameter.array is not None:
                yield parameter
        for _, child in self._named_children():
            yield from child.params(include_uninit)

    def namedparams(self, include_uninit=True) -> Any:
        """All parameters with their paths, such as "/l1/W"."""
        for name in sorted(self._params):
            parameter = self.__dict__[name]
            if include_uninit or parameter.array is not None:
                yield "/" + name, parameter
        for name, child in self._named_children():
            for path, parameter in child.namedparams(include_uninit):
                yield f"/{name}{path}", parameter

    def links(self, skipself=False) -> Any:
        """This link and all below it."""
        if not skipself:
            yield self
        for _, child in self._named_children():
            yield from child.links()

    def namedlinks(self, skipself=False) -> Any:
        """This link and all below it, with their paths."""
        if not skipself:
            yield "/", self
        for name, child in self._named_children():
            yield "/" + name, child
            for path, link in child.namedlinks(True):
                yield f"/{name}{path}", link

    def count_params(self) -> Any:
        """The number of elements of all parameters. Warns of those without an array."""
        size = 0
        for name, parameter in self.namedparams():
            if parameter.array is None:
                warnings.warn(f"Parameter '{name}' has not been initialized, so the resulting "
                              "count will not include the number of parameters in it.")
            else:
                size += parameter.size
        return size

    # Copies.

    def copy(self, mode="share") -> Any:
        """A copy of the link and all below it.

        Parameters of the copy share the arrays with ``mode="share"``, but not the gradients. They
        have copies of the arrays with "copy", and new initial values with "init".
        """
        if mode == "share":
            made = copy.copy(self)
            made._params = set(self._params)
            made._persistent = set(self._persistent)
            made.name = None
            for name in made._params:
                parameter = made.__dict__[name] = copy.copy(made.__dict__[name])
                parameter.grad = None
            made._copy_children()
            return made
        if mode not in ("copy", "init"):
            raise ValueError("The 'mode' argument should be either 'init','copy', or 'share'. But "
                             f"{mode} was given.")
        made = copy.deepcopy(self)
        if mode == "init":
            for path, parameter in made.namedparams(include_uninit=False):
                if parameter.initializer is None:
                    raise TypeError(f"[Link] copy: expected an initializer of {path}, got a "
                                    "parameter that was made from an array")
                parameter.initialize(parameter.shape)
        return made

    def _copy_children(self):
        """Replaces the children by copies that share the arrays."""

    def repeat(self, n_repeat, mode="init") -> Any:
        """A Sequential of copies of this link."""
        from catena.sequential import Sequential
        if n_repeat <= 0:
            return Sequential()
        return Sequential(*[self.copy(mode) for _ in range(n_repeat)])

    def _pairs(self, link):
        """This link and its children, each with its counterpart."""
        theirs = dict(link._named_children())
        return [(child, theirs[name]) for name, child in self._named_children()]

    def copyparams(self, link, copy_persistent=True) -> None:
        """Copies all parameters, and persistent values, from a link of the same structure."""
        ours, theirs = self.__dict__, link.__dict__
        for name in self._params:
            ours[name].copydata(theirs[name])
        for name in self._persistent if copy_persistent else ():
            if _is_array(ours[name]) and _is_array(theirs[name]):
                _core.as_array(ours[name]).copy_from(_core.as_array(theirs[name]))
            else:
                ours[name] = copy.deepcopy(theirs[name])
        for child, other in self._pairs(link):
            child.copyparams(other, copy_persistent)

    # Gradients and updates.

    def cleargrads(self) -> None:
        """Removes the gradients of all parameters."""
        for parameter in self.params():
            parameter.cleargrad()

    def zerograds(self) -> None:
        """Sets the gradients of all parameters to zeros."""
        warnings.warn("Link.zerograds is deprecated. Use Link.cleargrads instead.",
                      DeprecationWarning)
        for parameter in self.params():
            parameter.zerograd()

    def addgrads(self, link) -> None:
        """Adds the gradients of a link of the same structure."""
        for name in self._params:
            self.__dict__[name].addgrad(link.__dict__[name])
        for child, other in self._pairs(link):
            child.addgrads(other)

    def _rules(self):
        return [p.update_rule for p in self.params() if p.update_rule is not None]

    def enable_update(self) -> None:
        """Makes optimizers update the parameters again."""
        for rule in self._rules():
            rule.enabled = True

    def disable_update(self) -> None:
        """Makes optimizers leave the parameters as they are."""
        for rule in self._rules():
            rule.enabled = False

    @property
    def update_enabled(self):
        """Whether optimizers update any of the parameters."""
        return any(rule.enabled for rule in self._rules())

    # Devices.

    def device_resident_accept(self, visitor) -> None:
        """Calls the methods of a DeviceResidentsVisitor with the link and all in it."""
        super().device_resident_accept(visitor)
        values = self.__dict__
        for name in self._params:
            visitor.visit_variable(values[name])
        for name in self._persistent:
            value = values[name]
            if isinstance(value, DeviceResident):
                value.device_resident_accept(visitor)
            elif _is_array(value):
                values[name] = visitor.visit_array(value)
        for _, child in self._named_children():
            child.device_resident_accept(visitor)

    # Saving and loading.

    def serialize(self, serializer) -> None:
        """Saves or loads all parameters and persistent values."""
        values = self.__dict__
        for name in sorted(self._params):
            parameter = values[name]
            data = serializer(name, parameter.array)
            if parameter.array is None and data is not None:
                parameter.initialize(data.shape)
                data = _core.as_array(data).astype(str(parameter.dtype))
                parameter._array.copy_from(data)
        for name in sorted(self._persistent):
            values[name] = serializer(name, values[name])
        for name, child in self._named_children():
            child.serialize(serializer[name])


def _is_array(value):
    import numpy
    return isinstance(value, (numpy.ndarray, _core.Array))


def _text_of_children(link, children):
    """The text of a link that consists of others, one a line."""
    lines = [f"  {line}\n" for name, child in children
             for line in f"({name}): {child},".splitlines()]
    body = "\n" + "".join(lines) if lines else ""
    return f"{type(link).__name__}({body})"


class Chain(Link):
    """A link that consists of links with names.

    A link becomes a child when it is assigned to an attribute within ``init_scope()``.

    Args:
        links: names of children with the links.
    """

    def __init__(self, **links) -> None:
        super().__init__()
        self._children = set()
        for name, link in links.items():
            self.add_link(name, link)

    def __str__(self):
        return _text_of_children(self, self._named_children())

    def __getitem__(self, name) -> Any:
        """The child, or another attribute, with the name."""
        return getattr(self, name)

    def __setattr__(self, name, value):
        if self._within_init_scope and isinstance(value, Link):
            if hasattr(self, name):
                raise AttributeError(f"cannot register a new link {name}: attribute exists")
            value.name = name
            self._children.add(name)
        super().__setattr__(name, value)

    def __delattr__(self, name):
        self._children.discard(name)
        super().__delattr__(name)

    def add_link(self, name, link) -> None:
        """Adds a child, which becomes an attribute."""
        self._check_new(name, "link")
        if not isinstance(link, Link):
            raise TypeError("cannot register a non-link object as a child, got "
                            f"{type(link).__name__}")
        with self.init_scope():
            setattr(self, name, link)

    def _named_children(self):
        return [(name, self.__dict__[name]) for name in sorted(self._children)]

    def _copy_children(self):
        self._children = set(self._children)
        for name in self._children:
            child = self.__dict__[name] = self.__dict__[name].copy()
            child.name = name


class ChainList(Link, collections.abc.MutableSequence):
    """A link that consists of a list of links, whose names are their numbers.

    Args:
        links: the children.
    """

    def __init__(self, *links) -> None:
        super().__init__()
        self._children = []
        for link in links:
            self.add_link(link)

    def __str__(self):
        return _text_of_children(self, self._named_children())

    def __setattr__(self, name, value):
        if self._within_init_scope and isinstance(value, Link):
            raise TypeError('cannot register a new link within a "with chainlist.init_scope():" '
                            "block.")
        super().__setattr__(name, value)

    def _set_names(self):
        for i, child in enumerate(self._children):
            child.name = str(i)

    def __getitem__(self, index) -> Any:
        return self._children[index]

    def __setitem__(self, index, value):
        if not isinstance(index, (int, slice)):
            raise TypeError("ChainList indices must be integers or slices, not "
                            f"{type(index).__name__}")
        self._children[index] = value
        self._set_names()

    def __delitem__(self, index):
        del self._children[index]
        self._set_names()

    def __iter__(self) -> Any:
        return iter(self._children)

    def __len__(self) -> int:
        return len(self._children)

    def insert(self, index, link) -> None:
        """Adds a child before the one with the number."""
        self._children.insert(index, link)
        self._set_names()

    def add_link(self, link) -> None:
        """Adds a child to the end."""
        self.append(link)

    def _named_children(self):
        return [(str(i), child) for i, child in enumerate(self._children)]

    def _copy_children(self):
        self._children = [child.copy() for child in self._children]
        self._set_names()
