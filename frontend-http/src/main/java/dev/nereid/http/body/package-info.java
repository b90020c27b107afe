/** Request and response bodies: memory, compression, limits, errors and event-loop hand-over. */
@NullMarked
package dev.nereid.http.body;

import org.jspecify.annotations.NullMarked;
