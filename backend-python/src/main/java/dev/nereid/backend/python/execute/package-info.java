/**
 * Executions of one process: batches become frames, and frames become responses.
 *
 * <p>Starting point: {@link dev.nereid.backend.python.execute.Executions}.
 */
@NullMarked
package dev.nereid.backend.python.execute;

import org.jspecify.annotations.NullMarked;
