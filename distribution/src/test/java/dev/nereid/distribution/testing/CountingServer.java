package dev.nereid.distribution.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.api.ForwardingObserver;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelCatalog;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.ServerMetadata;
import dev.nereid.api.memory.SharedMemory;
import dev.nereid.api.memory.TensorMemory;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.UnaryOperator;

/**
 * Counts the completions and memory releases of requests. It stands between the front ends and a server; every request
 * has to complete once and to release its memory once. Safe for use by any thread.
 */
public final class CountingServer implements InferenceServer {
    private final InferenceServer server;
    private final UnaryOperator<ResponseObserver> wrapping;
    private final AtomicLong requests = new AtomicLong();
    private final AtomicLong completed = new AtomicLong();
    private final AtomicLong released = new AtomicLong();
    private final AtomicLong surplus = new AtomicLong();

    public CountingServer(InferenceServer server) {
        this(server, observer -> observer);
    }

    /** Counts, and lets a test wrap the observers of the front ends. */
    public CountingServer(InferenceServer server, UnaryOperator<ResponseObserver> wrapping) {
        this.server = server;
        this.wrapping = wrapping;
    }

    /** Waits until every request has completed and released its memory; fails if one did so twice. */
    public void awaitCompletion() {
        Eventually.holds(
                "every request" + " completed",
                60,
                () -> completed.get() == requests.get() && released.get() == requests.get());
        assertThat(surplus).hasValue(0);
    }

    /** Returns the number of requests. */
    public long requests() {
        return requests.get();
    }

    @Override
    public Cancellation infer(InferRequest call, ResponseObserver observer) {
        requests.incrementAndGet();
        Once release = new Once(released);
        InferRequest counted = new InferRequest(
                call.model(), call.id(), call.inputs(), call.outputs(), call.parameters(), call.options(), () -> {
                    call.release().run();
                    release.happened();
                });
        return server.infer(counted, new CountingObserver(wrapping.apply(observer)));
    }

    @Override
    public ModelCatalog models() {
        return server.models();
    }

    @Override
    public ModelControl control() {
        return server.control();
    }

    @Override
    public SharedMemory sharedMemory() {
        return server.sharedMemory();
    }

    @Override
    public TensorMemory memory() {
        return server.memory();
    }

    @Override
    public ServerMetadata metadata() {
        return server.metadata();
    }

    @Override
    public boolean isLive() {
        return server.isLive();
    }

    @Override
    public boolean isExiting() {
        return server.isExiting();
    }

    @Override
    public boolean isReady() {
        return server.isReady();
    }

    /** Counts an event that must happen once. */
    private final class Once {
        private final AtomicInteger times = new AtomicInteger();
        private final AtomicLong total;

        Once(AtomicLong total) {
            this.total = total;
        }

        void happened() {
            if (times.incrementAndGet() == 1) {
                total.incrementAndGet();
            } else {
                surplus.incrementAndGet();
            }
        }
    }

    /** Counts how a call ends. */
    private final class CountingObserver extends ForwardingObserver {
        private final Once end = new Once(completed);

        CountingObserver(ResponseObserver observer) {
            super(observer);
        }

        @Override
        public void onResponse(InferResponse response) {
            boolean isLast = response.isFinal(); // the observer may close it
            super.onResponse(response);
            if (isLast) {
                end.happened();
            }
        }

        @Override
        public void onCompleted() {
            super.onCompleted();
            end.happened();
        }

        @Override
        public void onError(InferenceException error) {
            super.onError(error);
            end.happened();
        }

        @Override
        public void onRefused(InferenceException error) {
            super.onRefused(error);
            end.happened();
        }
    }
}
