"""Imports of model files: their names, and where their byte code goes."""

import importlib.machinery
import importlib.util
import os
import sys
import time
import types
from typing import Any, List, Optional

#: The age of a file whose byte code is kept.
_SETTLED_SECONDS = 2.0


def _loader(prefix: str) -> Any:
    class Loader(importlib.machinery.SourceFileLoader):
        """Keeps byte code under a prefix, so that a repository never changes by an import."""

        def get_code(self, fullname: str) -> Any:
            before = sys.pycache_prefix
            sys.pycache_prefix = prefix
            try:
                return super().get_code(fullname)
            finally:
                sys.pycache_prefix = before

        def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
            # Byte code is valid for a time in whole seconds and a size, which a file that is still edited may keep.
            try:
                age = time.time() - os.stat(self.path).st_mtime
            except OSError:
                return
            if age >= _SETTLED_SECONDS:
                super().set_data(path, data, _mode=_mode)

    return Loader


def keep_byte_code(prefix: str, directories: List[str]) -> None:
    """Lets modules in these directories have their byte code under ``prefix``; others keep it where it is.

    Interpreters that the model starts have all their byte code there, unless the environment says where.
    """
    os.environ.setdefault("PYTHONPYCACHEPREFIX", prefix)
    roots = [os.path.join(os.path.abspath(directory), "") for directory in directories]
    loader = _loader(prefix)
    details = (
        (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
        (loader, importlib.machinery.SOURCE_SUFFIXES),
        (importlib.machinery.SourcelessFileLoader, importlib.machinery.BYTECODE_SUFFIXES),
    )

    def hook(path: str) -> importlib.machinery.FileFinder:
        directory = os.path.join(os.path.abspath(path), "")
        if path and os.path.isdir(path) and any(directory.startswith(root) for root in roots):
            return importlib.machinery.FileFinder(path, *details)
        raise ImportError("not a directory of the model", path=path)

    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()


def import_file(name: str, file: str, prefix: Optional[str]) -> types.ModuleType:
    """Imports a model file as ``1.model`` or ``model``."""
    package, _, stem = name.rpartition(".")
    if package:
        # Not by the path: another directory of that name may come first.
        directory = os.path.dirname(file)
        init = os.path.join(directory, "__init__.py")
        if os.path.isfile(init):
            _load(package, init, prefix, [directory])
        else:
            spec = importlib.machinery.ModuleSpec(package, None, is_package=True)
            spec.submodule_search_locations = [directory]
            sys.modules[package] = importlib.util.module_from_spec(spec)
    module = _load(name, file, prefix, None)
    if package:
        setattr(sys.modules[package], stem, module)
    return module


def _load(name: str, file: str, prefix: Optional[str], locations: Optional[List[str]]) -> types.ModuleType:
    loader = None if prefix is None else _loader(prefix)(name, file)
    spec = importlib.util.spec_from_file_location(name, file, loader=loader, submodule_search_locations=locations)
    if spec is None or spec.loader is None:
        raise ImportError("Model name must end with '.py'. Model name is \"%s\"." % os.path.basename(file))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module
