package dev.nereid.distribution.metrics;

import java.util.function.LongSupplier;

/**
 * Connection counters of one port, for metrics. Immutable, but for what it counts.
 *
 * @param port the port: http, grpc or metrics
 * @param open how many are open
 * @param refused how many were closed at once, since there were too many
 */
public record ConnectionCounts(String port, LongSupplier open, LongSupplier refused) {}
