package dev.nereid.benchmarks.load;

import io.netty.channel.Channel;
import io.netty.channel.ChannelFactory;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.ServerChannel;
import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;
import io.vertx.core.internal.VertxInternal;

/** The event loops of one process, native ones where available. Owned by the code that started them. */
public final class ClientEventLoops implements AutoCloseable {
    private final VertxInternal vertx;
    private final int count;

    private ClientEventLoops(VertxInternal vertx, int count) {
        this.vertx = vertx;
        this.count = count;
    }

    public static ClientEventLoops start(int count) {
        VertxOptions options = new VertxOptions().setEventLoopPoolSize(count).setPreferNativeTransport(true);
        return new ClientEventLoops((VertxInternal) Vertx.vertx(options), count);
    }

    /** Returns how many there are. */
    int count() {
        return count;
    }

    /** Returns the loops as Vert.x has them. */
    public Vertx vertx() {
        return vertx;
    }

    public EventLoopGroup acceptors() {
        return vertx.acceptorEventLoopGroup();
    }

    public EventLoopGroup workers() {
        return vertx.nettyEventLoopGroup();
    }

    public ChannelFactory<? extends ServerChannel> serverChannels() {
        return vertx.transport().serverChannelFactory(false);
    }

    ChannelFactory<? extends Channel> clientChannels() {
        return vertx.transport().channelFactory(false);
    }

    @Override
    public void close() {
        vertx.close().await();
    }
}
