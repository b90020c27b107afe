package dev.nereid.grpc;

import inference.ModelStreamInferResponse;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.Status;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A stream without a network, which remembers what is written. Fails if two threads write at a time, if anything is
 * written out of order, or without need. Safe for use by any thread.
 */
final class RecordedStream extends ServerCall<Parsed<InferMessage>, InferResponseMessage> {
    final List<ModelStreamInferResponse> written = new ArrayList<>();
    final AtomicInteger requested = new AtomicInteger();
    volatile boolean ready = true;
    volatile @Nullable Status status;

    /** Is told of each message and of the end, before the client is; nobody by default. */
    Consumer<String> journal = _ -> {};

    private final AtomicBoolean busy = new AtomicBoolean();
    private boolean headersSent;

    /** Thrown instead of sending anything, as by a transport without memory; none by default. */
    @Nullable
    Error failure;

    private void alone(Runnable action) {
        if (!busy.compareAndSet(false, true)) {
            throw new AssertionError("two threads write at a time");
        }
        try {
            action.run();
        } finally {
            busy.set(false);
        }
    }

    @Override
    public void request(int count) {
        requested.addAndGet(count);
    }

    @Override
    public void sendHeaders(Metadata headers) {
        alone(() -> {
            failIfBroken();
            headersSent = true;
        });
    }

    @Override
    public void sendMessage(InferResponseMessage message) {
        alone(() -> {
            failIfBroken();
            journal.accept("message");
            if (!headersSent || status != null) {
                throw new AssertionError("message out of order");
            }
            try {
                written.add(ModelStreamInferResponse.parseFrom(message.readAllBytes()));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
    }

    private void failIfBroken() {
        if (failure != null) {
            throw failure;
        }
    }

    @Override
    public void close(Status result, Metadata trailers) {
        alone(() -> {
            if (status != null) {
                throw new AssertionError("closed twice");
            }
            journal.accept(result.getCode().name());
            status = result;
        });
    }

    @Override
    public boolean isReady() {
        return ready && status == null;
    }

    @Override
    public boolean isCancelled() {
        return false;
    }

    @Override
    public MethodDescriptor<Parsed<InferMessage>, InferResponseMessage> getMethodDescriptor() {
        throw new UnsupportedOperationException("the method does not matter");
    }
}
