/**
 * The commands of the {@code nereid} program, and the assembly of server and front ends.
 *
 * <p>Starting points: {@link dev.nereid.distribution.Main}, which runs a command line; {@code ServeCommand} and
 * {@code DemoCommand}; {@code RunningServer}, which starts and stops everything in order.
 */
@NullMarked
package dev.nereid.distribution;

import org.jspecify.annotations.NullMarked;
