/** The metrics endpoint: Prometheus text of servers, models and the JVM. */
@NullMarked
package dev.nereid.distribution.metrics;

import org.jspecify.annotations.NullMarked;
