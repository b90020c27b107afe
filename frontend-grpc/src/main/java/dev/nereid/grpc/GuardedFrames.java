package dev.nereid.grpc;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http2.Http2CodecUtil;
import io.netty.handler.codec.http2.Http2Exception;
import io.netty.handler.codec.http2.Http2Flags;
import io.netty.handler.codec.http2.Http2FrameListener;
import io.netty.handler.codec.http2.Http2FrameListenerDecorator;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2Settings;

/** Shows the frames of a client to its connection before gRPC has them. Confined to the event loop of the connection. */
final class GuardedFrames extends Http2FrameListenerDecorator {
    private final GuardedConnection connection;

    GuardedFrames(Http2FrameListener grpc, GuardedConnection connection) {
        super(grpc);
        this.connection = connection;
    }

    @Override
    public void onHeadersRead(
            ChannelHandlerContext ctx, int streamId, Http2Headers headers, int padding, boolean endStream)
            throws Http2Exception {
        if (!connection.refuses(ctx, streamId, headers, this)) {
            super.onHeadersRead(ctx, streamId, headers, padding, endStream);
        }
    }

    @Override
    public void onHeadersRead(
            ChannelHandlerContext ctx,
            int streamId,
            Http2Headers headers,
            int streamDependency,
            short weight,
            boolean exclusive,
            int padding,
            boolean endStream)
            throws Http2Exception {
        if (!connection.refuses(ctx, streamId, headers, this)) {
            super.onHeadersRead(ctx, streamId, headers, streamDependency, weight, exclusive, padding, endStream);
        }
    }

    @Override
    public int onDataRead(ChannelHandlerContext ctx, int streamId, ByteBuf data, int padding, boolean endOfStream)
            throws Http2Exception {
        return connection.data(ctx, streamId, data, padding, endOfStream, this);
    }

    /** Gives a frame of data to gRPC. */
    int pass(ChannelHandlerContext ctx, int streamId, ByteBuf data, int padding, boolean endOfStream)
            throws Http2Exception {
        return super.onDataRead(ctx, streamId, data, padding, endOfStream);
    }

    /** Tells gRPC that a stream was reset, as if the client had done it. */
    void reset(ChannelHandlerContext ctx, int streamId, long errorCode) throws Http2Exception {
        super.onRstStreamRead(ctx, streamId, errorCode);
    }

    @Override
    public void onRstStreamRead(ChannelHandlerContext ctx, int streamId, long errorCode) throws Http2Exception {
        connection.spendReset(streamId);
        super.onRstStreamRead(ctx, streamId, errorCode);
    }

    @Override
    public void onWindowUpdateRead(ChannelHandlerContext ctx, int streamId, int windowSizeIncrement)
            throws Http2Exception {
        if (streamId == Http2CodecUtil.CONNECTION_STREAM_ID) {
            connection.granted(windowSizeIncrement);
        }
        super.onWindowUpdateRead(ctx, streamId, windowSizeIncrement);
    }

    @Override
    public void onSettingsRead(ChannelHandlerContext ctx, Http2Settings settings) throws Http2Exception {
        connection.spendEmptyFrame();
        super.onSettingsRead(ctx, settings);
    }

    @Override
    public void onPriorityRead(
            ChannelHandlerContext ctx, int streamId, int streamDependency, short weight, boolean exclusive)
            throws Http2Exception {
        connection.spendEmptyFrame();
        super.onPriorityRead(ctx, streamId, streamDependency, weight, exclusive);
    }

    @Override
    public void onUnknownFrame(
            ChannelHandlerContext ctx, byte frameType, int streamId, Http2Flags flags, ByteBuf payload)
            throws Http2Exception {
        connection.spendEmptyFrame();
        super.onUnknownFrame(ctx, frameType, streamId, flags, payload);
    }

    @Override
    public void onPingAckRead(ChannelHandlerContext ctx, long data) throws Http2Exception {
        connection.spendEmptyFrame(); // the server pings once in hours
        super.onPingAckRead(ctx, data);
    }
}
