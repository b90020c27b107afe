/**
 * Memory outside the heap: pools for tensors, and the heap of the C library.
 *
 * <p>Starting point: {@link dev.nereid.server.memory.TensorPool}, {@link
 * dev.nereid.server.memory.NativeHeapTrimmer}.
 */
@NullMarked
package dev.nereid.server.memory;

import org.jspecify.annotations.NullMarked;
