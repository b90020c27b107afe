"""Runs the process of one instance of a Python model.

The package speaks the protocol of ``PROTOCOL.md`` over one socket, and gives models the modules
``triton_python_backend_utils`` and ``c_python_backend_utils``.
"""
