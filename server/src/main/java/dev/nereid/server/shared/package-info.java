/**
 * Memory that clients share with the server. It consists of parts of POSIX shared memory segments, mapped into the
 * process.
 *
 * <p>Starting point: {@link dev.nereid.server.shared.ClientSharedMemory}.
 */
@NullMarked
package dev.nereid.server.shared;

import org.jspecify.annotations.NullMarked;
