/**
 * Hostile clients over raw sockets against the assembled server. During and after attacks, the server responds to other
 * clients within a second, and stays within its memory limits.
 *
 * <p>Starting points: {@link dev.nereid.attacks.Victim}, which runs an attack, and {@link dev.nereid.attacks.Probe},
 * the client that must not notice it.
 */
@NullMarked
package dev.nereid.attacks;

import org.jspecify.annotations.NullMarked;
