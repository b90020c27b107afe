package dev.nereid.grpc;

import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;

/** Closes connections that are too many as soon as they are accepted. Safe for use by any thread. */
@ChannelHandler.Sharable
final class ConnectionAcceptor extends ChannelInboundHandlerAdapter {
    private final ConnectionGuard guard;

    ConnectionAcceptor(ConnectionGuard guard) {
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
