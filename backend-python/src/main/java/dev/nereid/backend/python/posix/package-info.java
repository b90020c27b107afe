/**
 * Functions of the C library of Linux that the JDK does not have: shared memory without a name, and sockets between processes.
 *
 * <p>Starting point: {@link dev.nereid.backend.python.posix.MemoryCalls}.
 */
@NullMarked
package dev.nereid.backend.python.posix;

import org.jspecify.annotations.NullMarked;
