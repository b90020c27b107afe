package dev.nereid.grpc.connection;

import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;

/** Closes accepted connections that exceed the connection limit. Safe for use by any thread. */
@ChannelHandler.Sharable
public final class ConnectionAcceptor extends ChannelInboundHandlerAdapter {
    private final ConnectionRegistry guard;

    public ConnectionAcceptor(ConnectionRegistry guard) {
        this.guard = guard;
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
        if (message instanceof Channel channel && !guard.accept(channel)) {
            channel.unsafe().closeForcibly();
            return;
        }
        ctx.fireChannelRead(message);
    }
}
