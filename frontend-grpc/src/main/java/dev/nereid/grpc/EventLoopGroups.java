package dev.nereid.grpc;

import static java.util.Objects.requireNonNull;

import io.netty.channel.ChannelFactory;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.ServerChannel;

/**
 * The event loops that a front end runs on, which may be those of another one too. Immutable.
 *
 * @param acceptors accepts connections
 * @param workers runs connections; may be the same
 * @param channels makes server channels that fit both groups
 */
public record EventLoopGroups(
        EventLoopGroup acceptors, EventLoopGroup workers, ChannelFactory<? extends ServerChannel> channels) {
    /** Checks the components. */
    public EventLoopGroups {
        requireNonNull(acceptors, "acceptors");
        requireNonNull(workers, "workers");
        requireNonNull(channels, "channels");
    }
}
