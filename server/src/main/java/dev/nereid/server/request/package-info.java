/**
 * Validation of requests before they are scheduled.
 *
 * <p>Starting point: {@link dev.nereid.server.request.RequestChecks}, created once for each model version.
 */
@NullMarked
package dev.nereid.server.request;

import org.jspecify.annotations.NullMarked;
