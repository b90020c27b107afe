/**
 * Checks model repositories without serving them.
 *
 * <p>Starting point: {@link dev.nereid.server.check.RepositoryCheck}, which returns a report.
 */
@NullMarked
package dev.nereid.server.check;

import org.jspecify.annotations.NullMarked;
