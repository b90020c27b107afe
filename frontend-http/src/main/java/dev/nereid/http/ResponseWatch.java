package dev.nereid.http;

import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.vertx.core.http.impl.http1.VertxHttpObject;

/** Tells a connection of the responses that are written to it, and has it close in steps. Confined to its event loop. */
final class ResponseWatch extends ChannelOutboundHandlerAdapter {
    private final ServerConnection connection;

    ResponseWatch(ServerConnection connection) {
        this.connection = connection;
    }

    @Override
    @SuppressWarnings("FutureReturnValueIgnored") // the caller has the promise
    public void write(ChannelHandlerContext context, Object message, ChannelPromise promise) {
        if (!(message instanceof VertxHttpObject part)) {
            context.write(message, promise);
            return;
        }
        connection.writing(part);
        boolean isLast = part.isEnded(); // asked now: the transport may release the message
        context.write(message, promise);
        if (isLast) {
            connection.responseWritten();
        }
    }

    @Override
    public void close(ChannelHandlerContext context, ChannelPromise promise) {
        connection.closeInSteps(context, promise);
    }
}
