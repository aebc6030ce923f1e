# `IPython.display`, which models import: its `display` is that of the kernel.
#
# In: imports of the code. Out: the module of IPython with that function or, where IPython is not
# installed, a module with it and with the classes that carry a content.

import importlib.machinery

PACKAGE, DISPLAY = "IPython", "IPython.display"


class IPythonFinder:
    """Finds the module in front of all other finders."""

    def __init__(self, display):
        self.display = display

    def find_spec(self, name, path=None, target=None):
        if name not in (PACKAGE, DISPLAY):
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if name == DISPLAY and spec.loader is not None:
                    spec.loader = DisplayLoader(self.display, spec.loader)
                return spec
        if name == DISPLAY and path:
            # There is an IPython without this module.
            return None
        loader = StandInLoader(self.display)
        return importlib.machinery.ModuleSpec(name, loader, is_package=name == PACKAGE)


class DisplayLoader:
    """Loads the module of IPython, and puts the function in it."""

    def __init__(self, display, loader):
        self.display, self.loader = display, loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        module.display = display_of(self.display)


class StandInLoader:
    """Makes modules in place of those that are not installed."""

    def __init__(self, display):
        self.display = display

    def create_module(self, _):
        return None

    def exec_module(self, module):
        # Libraries ask a module of this name for these.
        module.version_info, module.get_ipython = (9, 0, 0, ""), lambda: None
        if module.__name__ == DISPLAY:
            module.display, module.clear_output = display_of(self.display), lambda *_, **__: None
            for name, kind in CONTENTS.items():
                setattr(module, name, content_of(name, kind))


# The classes of contents, and the kinds of these.
CONTENTS = {
    "HTML": "text/html",
    "Image": "image/png",
    "JSON": "application/json",
    "Markdown": "text/markdown",
    "SVG": "image/svg+xml",
}


def display_of(display):
    """A function with the parameters of IPython's, of which only `raw` has a meaning here."""

    def shown(*values, raw=False, **_):
        display(*values, raw=raw)

    shown.__name__ = "display"
    return shown


def content_of(name, kind):
    def begin(self, data=None, filename=None, **_):
        if data is None and filename is not None:
            with open(filename, "rb") as file:
                data = file.read()
        if data is None:
            raise TypeError(f"{name}: give data or filename; this is a stand-in for IPython")
        is_jpeg = isinstance(data, bytes) and kind == "image/png" and data[:2] == b"\xff\xd8"
        self.data, self.kind = data, "image/jpeg" if is_jpeg else kind

    def bundle(self, **_):
        is_text = self.kind not in ("image/png", "image/jpeg", "application/json")
        data = self.data.decode() if is_text and isinstance(self.data, bytes) else self.data
        return {self.kind: data}

    return type(name, (), {"__init__": begin, "_repr_mimebundle_": bundle})
