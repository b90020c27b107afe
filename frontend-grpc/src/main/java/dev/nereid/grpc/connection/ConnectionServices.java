package dev.nereid.grpc.connection;

import dev.nereid.api.Refusals;
import java.net.SocketAddress;
import java.util.concurrent.Executor;
import java.util.function.BiConsumer;
import java.util.function.LongSupplier;

/**
 * Dependencies that all connections of a front end share. Immutable; the components are safe for use by any thread.
 *
 * @param memory counts the memory of messages
 * @param workers runs tasks that take an event loop too long
 * @param refusals counts refused calls
 * @param disconnects logs the address of a disconnected client and the reason
 */
record ConnectionServices(
        OpenCallLimit calls,
        StalledConnections unread,
        TransportMemory memory,
        Executor workers,
        Refusals refusals,
        LongSupplier nanoTime,
        BiConsumer<SocketAddress, String> disconnects) {}
