/** Pooled tensor memory outside the heap. */
@NullMarked
package dev.nereid.server.memory;

import org.jspecify.annotations.NullMarked;
