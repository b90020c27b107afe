package dev.nereid.http.connection;

import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.vertx.core.http.impl.http1.VertxHttpObject;

/** Reports written responses to the connection, and closes it with lingering. Confined to its event loop. */
final class ResponseWriteHandler extends ChannelOutboundHandlerAdapter {
    private final ServerConnection connection;

    ResponseWriteHandler(ServerConnection connection) {
        this.connection = connection;
    }

    @Override
    @SuppressWarnings("FutureReturnValueIgnored") // the caller has the promise
    public void write(ChannelHandlerContext context, Object message, ChannelPromise promise) {
        if (!(message instanceof VertxHttpObject part)) {
            context.write(message, promise);
            return;
        }
        connection.onWrite(part);
        boolean isLast = part.isEnded(); // before the write: the transport may release the message
        context.write(message, promise);
        if (isLast) {
            connection.responseWritten();
        }
    }

    @Override
    public void close(ChannelHandlerContext context, ChannelPromise promise) {
        connection.lingeringClose(context, promise);
    }
}
