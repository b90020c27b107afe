package dev.nereid.grpc.service;

import dev.nereid.api.InferenceException;
import dev.nereid.grpc.connection.HeldBytes;
import dev.nereid.grpc.connection.Parsed;
import dev.nereid.grpc.connection.ShutdownInterceptor;
import dev.nereid.grpc.wire.GrpcErrors;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerMethodDefinition;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthCheckResponse;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.health.v1.HealthGrpc;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Handles {@code Watch}: sends health status changes to watching clients. Safe for use by any thread.
 *
 * <p>A new watcher is sent the status at once, on the event loop of its connection, and is registered then. From then
 * on one timer, which runs while there are watchers, sends it changes. A watcher that cannot be written to is retried
 * with the next tick, and does not affect other watchers.
 */
final class HealthWatchers
        implements ServerCallHandler<Parsed<ControlRequest<HealthCheckRequest>>, HealthCheckResponse> {
    private static final Logger LOG = LoggerFactory.getLogger(HealthWatchers.class);
    private static final long INTERVAL_MILLIS = 200;

    private final Function<String, ServingStatus> statuses;
    private final Executor timer;
    private final Executor delayedTimer;
    private final Set<Watcher> watchers = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean ticking = new AtomicBoolean();
    private volatile boolean stopped;

    /**
     * Creates the method.
     *
     * @param statuses returns the status of a service, also of one that does not exist
     * @param timer the thread that checks for changes
     */
    HealthWatchers(Function<String, ServingStatus> statuses, Executor timer) {
        this.statuses = statuses;
        this.timer = timer;
        this.delayedTimer = CompletableFuture.delayedExecutor(INTERVAL_MILLIS, TimeUnit.MILLISECONDS, timer);
    }

    ServerMethodDefinition<?, ?> definition() {
        return ServerMethodDefinition.create(UnaryMethod.parsing(HealthGrpc.getWatchMethod()), this);
    }

    @Override
    public ServerCall.Listener<Parsed<ControlRequest<HealthCheckRequest>>> startCall(
            ServerCall<Parsed<ControlRequest<HealthCheckRequest>>, HealthCheckResponse> call, Metadata headers) {
        call.request(2);
        return new Watcher(call);
    }

    /** Reports to all watchers that the server does not serve. Ends their calls; later calls end at once. */
    void stop() {
        stopped = true;
        timer.execute(this::notifyWatchers);
    }

    private void register(Watcher watcher) {
        watchers.add(watcher);
        if (stopped) {
            timer.execute(this::notifyWatchers);
        }
        tickIfNeeded();
    }

    private void tickIfNeeded() {
        if (!watchers.isEmpty() && ticking.compareAndSet(false, true)) {
            delayedTimer.execute(this::tick);
        }
    }

    private void tick() {
        try {
            notifyWatchers();
        } finally {
            ticking.set(false); // first: a watcher registered from now on starts the timer itself
            tickIfNeeded();
        }
    }

    private void notifyWatchers() {
        if (stopped) {
            for (Watcher watcher : List.copyOf(watchers)) {
                if (watchers.remove(watcher)) {
                    runIsolated(watcher::end);
                }
            }
            return;
        }
        Map<String, ServingStatus> current = new HashMap<>();
        for (Watcher watcher : watchers) {
            runIsolated(() -> watcher.send(current.computeIfAbsent(watcher.service, statuses)));
        }
    }

    /** Runs an action for one watcher; a failure does not affect the others. */
    private static void runIsolated(Runnable action) {
        try {
            action.run();
        } catch (RuntimeException e) {
            LOG.atWarn().setCause(e).log("health status not sent to a watcher");
        }
    }

    /**
     * One {@code Watch} call. Confined to the event loop of its connection until it is registered, and to the timer
     * from then on.
     */
    private final class Watcher extends ServerCall.Listener<Parsed<ControlRequest<HealthCheckRequest>>> {
        private final ServerCall<Parsed<ControlRequest<HealthCheckRequest>>, HealthCheckResponse> call;
        private @Nullable Parsed<ControlRequest<HealthCheckRequest>> request;
        private final HeldBytes held;
        private boolean registered;
        private String service = "";
        private @Nullable ServingStatus lastSent;

        Watcher(ServerCall<Parsed<ControlRequest<HealthCheckRequest>>, HealthCheckResponse> call) {
            this.call = call;
            this.held = new HeldBytes(call.getAttributes());
        }

        @Override
        public void onMessage(Parsed<ControlRequest<HealthCheckRequest>> message) {
            if (message instanceof Parsed.Deferred<ControlRequest<HealthCheckRequest>> deferred) {
                deferred.bytes().close();
                request = new Parsed.Failed<>(GrpcErrors.malformed());
            } else {
                keep(message);
            }
        }

        private void keep(Parsed<ControlRequest<HealthCheckRequest>> message) {
            if (request == null && message instanceof Parsed.Ok<ControlRequest<HealthCheckRequest>>(var small)) {
                try {
                    held.hold(small.byteSize());
                } catch (InferenceException error) {
                    request = new Parsed.Failed<>(error);
                    return;
                }
            }
            request = message;
        }

        @Override
        public void onHalfClose() {
            if (registered) {
                return;
            }
            registered = true;
            try {
                service = Parsed.message(request).read(_ -> {}).getService();
                request = null; // not needed any more
            } catch (InferenceException error) {
                GrpcErrors.fail(call, error);
                return;
            }
            call.sendHeaders(new Metadata());
            send(statuses.apply(service));
            register(this);
        }

        @Override
        public void onCancel() {
            watchers.remove(this);
            held.clear();
        }

        @Override
        public void onComplete() {
            held.clear();
        }

        void send(ServingStatus now) {
            if (now != lastSent && (call.isReady() || lastSent == null)) {
                lastSent = now;
                call.sendMessage(HealthCheckResponse.newBuilder().setStatus(now).build());
            }
        }

        void end() {
            send(ServingStatus.NOT_SERVING);
            GrpcErrors.fail(call, ShutdownInterceptor.refusal());
        }
    }
}
