/**
 * Shared memory of the server and the process of one Python model instance: segments, and slots for tensors in them.
 *
 * <p>Starting point: {@link dev.nereid.backend.python.memory.SharedMemory}.
 */
@NullMarked
package dev.nereid.backend.python.memory;

import org.jspecify.annotations.NullMarked;
