/**
 * The backend for models that are written in Python for the Python backend of Triton.
 *
 * <p>Starting points: {@link dev.nereid.backend.python.PythonProvider} creates the backend, {@link
 * dev.nereid.backend.python.PythonModel} is a loaded model, {@link dev.nereid.backend.python.PythonInstance} an instance, and
 * {@link dev.nereid.backend.python.PythonProcess} the process that executes its batches.
 */
@NullMarked
package dev.nereid.backend.python;

import org.jspecify.annotations.NullMarked;
