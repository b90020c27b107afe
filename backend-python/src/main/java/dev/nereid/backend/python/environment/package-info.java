/**
 * Between the configuration and the command line of a process: settings, parameters, the files of the runner, the
 * Python that runs a model and its environment variables.
 *
 * <p>Starting points: {@link dev.nereid.backend.python.environment.PythonSettings}, {@link
 * dev.nereid.backend.python.environment.Environments} and {@link dev.nereid.backend.python.environment.OpenSettings}.
 */
@NullMarked
package dev.nereid.backend.python.environment;

import org.jspecify.annotations.NullMarked;
