/**
 * Reports of Python processes to the server: log, metrics, readiness and notices.
 *
 * <p>Starting points: {@link dev.nereid.backend.python.report.ModelLog}, {@link
 * dev.nereid.backend.python.report.MetricFrames} and {@link dev.nereid.backend.python.report.ReadyChecks}.
 */
@NullMarked
package dev.nereid.backend.python.report;

import org.jspecify.annotations.NullMarked;
