package dev.nereid.distribution.metrics;

import java.util.function.LongSupplier;

/**
 * Connection counters of one port, for metrics. Immutable references to live counters.
 *
 * @param port the port: http, grpc or metrics
 * @param refused counts connections that were closed at once because of the limit
 */
public record ConnectionCounts(String port, LongSupplier open, LongSupplier refused) {}
