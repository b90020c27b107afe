/** Handlers of everything but inference: metadata, health, statistics, repository, shared memory. */
@NullMarked
package dev.nereid.http.control;

import org.jspecify.annotations.NullMarked;
