/**
 * Processes of Python models: their start, output and end.
 *
 * <p>Starting point: {@link dev.nereid.backend.python.process.OutputReader}.
 */
@NullMarked
package dev.nereid.backend.python.process;

import org.jspecify.annotations.NullMarked;
