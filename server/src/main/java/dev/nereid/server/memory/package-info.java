/**
 * Memory outside the heap for tensors, pooled.
 *
 * <p>Starting point: {@link dev.nereid.server.memory.TensorPool}.
 */
@NullMarked
package dev.nereid.server.memory;

import org.jspecify.annotations.NullMarked;
