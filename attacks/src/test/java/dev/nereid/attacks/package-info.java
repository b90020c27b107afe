/**
 * Hostile clients over raw sockets, against the assembled server: while they are at work, and when they have left, the
 * server answers everybody else within a second, and stays within its memory.
 *
 * <p>Starting points: {@link dev.nereid.attacks.Victim}, which runs an attack, and {@link dev.nereid.attacks.Probe}, the
 * client that must not notice it.
 */
@NullMarked
package dev.nereid.attacks;

import org.jspecify.annotations.NullMarked;
