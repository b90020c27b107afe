package dev.nereid.distribution;

import java.util.function.LongSupplier;

/**
 * What metrics tell of the connections of one port. Immutable, but for what it counts.
 *
 * @param port the port: http, grpc or metrics
 * @param open how many are open
 * @param refused how many were closed at once, since there were too many
 */
record ConnectionCounts(String port, LongSupplier open, LongSupplier refused) {}
