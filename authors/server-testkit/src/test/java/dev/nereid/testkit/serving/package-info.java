/** Behavior of a server without sockets: sequences, queues, the rate limiter, the response cache and statistics. */
@NullMarked
package dev.nereid.testkit.serving;

import org.jspecify.annotations.NullMarked;
