package dev.nereid.http.connection;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFactory;
import io.netty.channel.ChannelHandler;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.ServerChannel;
import io.netty.channel.socket.DatagramChannel;
import io.netty.channel.socket.InternetProtocolFamily;
import io.vertx.core.datagram.DatagramSocketOptions;
import io.vertx.core.internal.VertxInternal;
import io.vertx.core.internal.VertxWrapper;
import io.vertx.core.net.TcpConfig;
import io.vertx.core.spi.transport.Transport;
import java.net.SocketAddress;
import java.util.concurrent.ThreadFactory;
import org.jspecify.annotations.Nullable;

/** A Vert.x transport that adds a handler to listening sockets. Immutable. */
final class LimitedTransport implements Transport {
    private final Transport transport;
    private final ChannelHandler acceptor;

    private LimitedTransport(Transport transport, ChannelHandler acceptor) {
        this.transport = transport;
        this.acceptor = acceptor;
    }

    /** Returns the event loops with listening sockets that pass accepted, unregistered connections to a handler. */
    static VertxInternal of(VertxInternal vertx, ChannelHandler acceptor) {
        Transport limited = new LimitedTransport(vertx.transport(), acceptor);
        return new VertxWrapper(vertx) {
            @Override
            public Transport transport() {
                return limited;
            }
        };
    }

    @Override
    public void configure(TcpConfig config, boolean domainSocket, ServerBootstrap bootstrap) {
        transport.configure(config, domainSocket, bootstrap);
        bootstrap.handler(acceptor);
    }

    @Override
    public void configure(TcpConfig config, boolean domainSocket, Bootstrap bootstrap) {
        transport.configure(config, domainSocket, bootstrap);
    }

    @Override
    public void configure(DatagramChannel channel, DatagramSocketOptions options) {
        transport.configure(channel, options);
    }

    @Override
    public boolean supportsDomainSockets() {
        return transport.supportsDomainSockets();
    }

    @Override
    public boolean supportFileRegion() {
        return transport.supportFileRegion();
    }

    @Override
    public boolean isAvailable() {
        return transport.isAvailable();
    }

    @Override
    public @Nullable Throwable unavailabilityCause() {
        return transport.unavailabilityCause();
    }

    @Override
    public SocketAddress convert(io.vertx.core.net.SocketAddress address) {
        return transport.convert(address);
    }

    @Override
    public io.vertx.core.net.SocketAddress convert(SocketAddress address) {
        return transport.convert(address);
    }

    @Override
    public IoHandlerFactory ioHandlerFactory() {
        return transport.ioHandlerFactory();
    }

    @Override
    public EventLoopGroup eventLoopGroup(int type, int threads, ThreadFactory factory, int ioRatio) {
        return transport.eventLoopGroup(type, threads, factory, ioRatio);
    }

    @Override
    @SuppressWarnings("deprecation") // the only type that the interface has
    public DatagramChannel datagramChannel(InternetProtocolFamily family) {
        return transport.datagramChannel(family);
    }

    @Override
    public ChannelFactory<? extends DatagramChannel> datagramChannelFactory() {
        return transport.datagramChannelFactory();
    }

    @Override
    public ChannelFactory<? extends Channel> channelFactory(boolean domainSocket) {
        return transport.channelFactory(domainSocket);
    }

    @Override
    public ChannelFactory<? extends ServerChannel> serverChannelFactory(boolean domainSocket) {
        return transport.serverChannelFactory(domainSocket);
    }
}
