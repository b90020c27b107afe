package dev.nereid.grpc;

import static java.util.Objects.requireNonNull;

import io.netty.channel.ChannelFactory;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.ServerChannel;
import java.util.concurrent.Executor;

/**
 * The event loops and worker threads that a front end runs on. Immutable.
 *
 * @param acceptors accepts connections
 * @param workers runs connections; may be the same
 * @param channels creates server channels that fit both groups
 * @param longTasks runs tasks that take an event loop too long, such as reading large messages; a few threads that run
 *     nothing that blocks, and that are no event loops
 */
public record EventLoopGroups(
        EventLoopGroup acceptors,
        EventLoopGroup workers,
        ChannelFactory<? extends ServerChannel> channels,
        Executor longTasks) {
    public EventLoopGroups {
        requireNonNull(acceptors, "acceptors");
        requireNonNull(workers, "workers");
        requireNonNull(channels, "channels");
        requireNonNull(longTasks, "longTasks");
    }
}
