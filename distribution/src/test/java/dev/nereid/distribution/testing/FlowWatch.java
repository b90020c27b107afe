package dev.nereid.distribution.testing;

import dev.nereid.api.ForwardingObserver;
import dev.nereid.api.InferResponse;
import dev.nereid.api.ResponseFlow;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.memory.TensorMemory;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Watches the responses of decoupled models between the server and its front ends: how many are sent to a client that is
 * slow, and how much waits at most. Safe for use by any thread.
 */
public final class FlowWatch {
    private final TensorMemory memory;
    private final AtomicLong sent = new AtomicLong();
    private final AtomicLong received = new AtomicLong();
    private final AtomicLong sentAgainstTheFlow = new AtomicLong();
    private final AtomicLong maxMemory = new AtomicLong();
    private final AtomicLong maxUnreceived = new AtomicLong();

    public FlowWatch(TensorMemory memory) {
        this.memory = memory;
    }

    /** Watches the responses to one request. */
    public ResponseObserver of(ResponseObserver observer) {
        return new Watching(observer);
    }

    /** Counts a response that the client has. */
    public void received() {
        received.incrementAndGet();
    }

    /** Returns the number of responses that the server has passed to its front ends. */
    public long sent() {
        return sent.get();
    }

    /**
     * Returns the number of responses that were sent although the client was slow: the flow was closed, and no look at it
     * since the response before had found it open. It may close between a look and the response.
     */
    public long sentAgainstTheFlow() {
        return sentAgainstTheFlow.get();
    }

    /** Returns the largest amount of tensor memory in use when a response was sent. */
    public long maxMemory() {
        return maxMemory.get();
    }

    /** Returns the largest number of responses on their way, in the server, the network and the client. */
    public long maxUnreceived() {
        return maxUnreceived.get();
    }

    private final class Watching extends ForwardingObserver {
        /** {@code true} if the flow was seen open since the last response. */
        private final AtomicBoolean seenOpen = new AtomicBoolean();

        Watching(ResponseObserver observer) {
            super(observer);
        }

        /** Returns a view of the flow that remembers what it has shown. */
        @Override
        public ResponseFlow flow() {
            ResponseFlow flow = super.flow();
            return new ResponseFlow() {
                @Override
                public boolean isOpen() {
                    boolean open = flow.isOpen();
                    if (open) {
                        seenOpen.set(true);
                    }
                    return open;
                }

                @Override
                public void whenOpen(Runnable action) {
                    flow.whenOpen(action);
                }
            };
        }

        @Override
        public void onResponse(InferResponse response) {
            boolean allowed = seenOpen.getAndSet(false);
            if (!allowed && !super.flow().isOpen()) {
                sentAgainstTheFlow.incrementAndGet();
            }
            maxMemory.accumulateAndGet(memory.bytesInUse(), Math::max);
            maxUnreceived.accumulateAndGet(sent.incrementAndGet() - received.get(), Math::max);
            super.onResponse(response);
        }
    }
}
