/**
 * Handlers of control requests: metadata, health, statistics, repository, shared memory.
 *
 * <p>Starting points: {@code ServerHandler}, {@code ModelHandler}, {@code RepositoryHandler}. {@code JsonResponses}
 * writes the responses with Jackson.
 */
@NullMarked
package dev.nereid.http.control;

import org.jspecify.annotations.NullMarked;
