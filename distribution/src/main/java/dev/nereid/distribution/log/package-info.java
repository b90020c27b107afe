/**
 * The log of the installed server: one line an event, in which nothing that a client sends can pass for another line, and
 * of which no cause can fill the disk.
 *
 * <p>Starting point: {@link dev.nereid.distribution.log.LogFactory}, which {@link
 * dev.nereid.distribution.log.LogProvider} gives to SLF4J.
 */
@NullMarked
package dev.nereid.distribution.log;

import org.jspecify.annotations.NullMarked;
