/** Threads for tasks of plugins beside executions. Starting point: {@link dev.nereid.server.executor.ModelExecutor}. */
@NullMarked
package dev.nereid.server.executor;

import org.jspecify.annotations.NullMarked;
