package dev.nereid.http.connection;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufHolder;
import io.netty.channel.MessageSizeEstimator;

/** Estimates outbound message sizes by buffer capacity. Immutable. */
final class CapacitySizeEstimator implements MessageSizeEstimator, MessageSizeEstimator.Handle {
    static final CapacitySizeEstimator INSTANCE = new CapacitySizeEstimator();

    private static final int UNKNOWN_SIZE = 8;

    private CapacitySizeEstimator() {}

    @Override
    public Handle newHandle() {
        return this;
    }

    @Override
    public int size(Object message) {
        if (message instanceof ByteBuf bytes) {
            return bytes.isReadable() ? bytes.capacity() : 0;
        }
        return message instanceof ByteBufHolder holder ? holder.content().capacity() : UNKNOWN_SIZE;
    }
}
