/** Pooled tensor memory, and memory that clients share with the server. */
@NullMarked
package dev.nereid.api.memory;

import org.jspecify.annotations.NullMarked;
