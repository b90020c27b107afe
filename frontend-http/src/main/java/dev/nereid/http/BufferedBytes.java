package dev.nereid.http;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufHolder;
import io.netty.channel.MessageSizeEstimator;

/** Counts a message that waits to be sent by the memory that it takes, which may be much more than its bytes. Immutable. */
final class BufferedBytes implements MessageSizeEstimator, MessageSizeEstimator.Handle {
    static final BufferedBytes INSTANCE = new BufferedBytes();

    private static final int UNKNOWN = 8;

    private BufferedBytes() {}

    @Override
    public Handle newHandle() {
        return this;
    }

    @Override
    public int size(Object message) {
        if (message instanceof ByteBuf bytes) {
            return bytes.isReadable() ? bytes.capacity() : 0;
        }
        return message instanceof ByteBufHolder holder ? holder.content().capacity() : UNKNOWN;
    }
}
