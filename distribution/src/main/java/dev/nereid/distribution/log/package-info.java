/**
 * The log of the installed server: escaped, length-limited and rate-limited lines.
 *
 * <p>Starting point: {@link dev.nereid.distribution.log.LogFactory}, which {@link
 * dev.nereid.distribution.log.LogProvider} provides to SLF4J.
 */
@NullMarked
package dev.nereid.distribution.log;

import org.jspecify.annotations.NullMarked;
