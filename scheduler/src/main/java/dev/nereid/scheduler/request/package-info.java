/** Requests: life cycle, cancellation, delivery of responses, and references to their memory. */
@NullMarked
package dev.nereid.scheduler.request;

import org.jspecify.annotations.NullMarked;
