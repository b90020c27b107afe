/**
 * Watches the server: its heap, its threads and its GPUs. Starting point: {@link dev.nereid.server.health.Health}, by which
 * the server is live.
 */
@NullMarked
package dev.nereid.server.health;

import org.jspecify.annotations.NullMarked;
