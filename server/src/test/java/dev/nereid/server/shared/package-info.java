/** Shared memory of clients: POSIX segments, mapped into the process. */
@NullMarked
package dev.nereid.server.shared;

import org.jspecify.annotations.NullMarked;
