package dev.nereid.distribution;

import dev.nereid.api.BestEffort;
import dev.nereid.api.InferenceException;
import dev.nereid.distribution.flags.EndpointFlags;
import dev.nereid.distribution.flags.ServerFlags;
import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.Endpoints;
import dev.nereid.distribution.process.EventLoops;
import dev.nereid.distribution.process.ExitStatus;
import dev.nereid.distribution.process.StartException;
import dev.nereid.distribution.report.CurlExample;
import dev.nereid.distribution.report.MemoryReport;
import dev.nereid.distribution.report.StartReport;
import dev.nereid.server.NereidServer;
import java.time.Duration;
import java.util.Optional;
import java.util.SortedMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The server of a process: starts and stops event loops, models and ports in order. Owned by the command that started
 * it, and used by one thread after the other.
 */
final class RunningServer {
    private static final Logger LOG = LoggerFactory.getLogger(RunningServer.class);

    /** The interval of lines about what a stop waits for. */
    private static final Duration REPORT_INTERVAL = Duration.ofSeconds(1);

    /** Time for the end of the process beyond the exit timeout. */
    private static final Duration MARGIN = Duration.ofSeconds(5);

    /** Minimum time for models to close. It applies even if the ports took all of the exit timeout. */
    private static final Duration MIN_CLOSE_TIMEOUT = Duration.ofSeconds(1);

    /**
     * Time beyond the exit timeout for which the ports wait for responses. Requests left at the end of the timeout
     * complete within two minimum close timeouts, one for the models and one for the cancellation, and their responses
     * have to reach the clients.
     */
    private static final Duration LAST_RESPONSES =
            MIN_CLOSE_TIMEOUT.plus(MIN_CLOSE_TIMEOUT).plusMillis(500);

    /** Time for closing beyond the exit timeout: last responses, a second for the last calls of gRPC, and a margin. */
    private static final Duration GRACE = LAST_RESPONSES.plusMillis(1500);

    /** The report of an expired exit timeout; the reference server's text. */
    private static final String EXPIRED = "Exit timeout expired. Exiting immediately.";

    private static final String EXIT_ON_ERROR = "; --exit-on-error=false serves the others";

    private final CommandContext context;
    private final Duration exitTimeout;
    private final Duration exitDelay;
    private final EventLoops loops;
    private final NereidServer server;
    private final Ports ports;
    private final MemoryReport memory;

    private RunningServer(
            CommandContext context,
            Duration exitTimeout,
            Duration exitDelay,
            EventLoops loops,
            NereidServer server,
            Ports ports,
            MemoryReport memory) {
        this.context = context;
        this.memory = memory;
        this.exitTimeout = exitTimeout;
        this.exitDelay = exitDelay;
        this.loops = loops;
        this.server = server;
        this.ports = ports;
    }

    /**
     * Starts a server and opens its ports; it is ready for requests.
     *
     * @throws StartException if something that the flags name is not available; nothing stays open
     */
    static RunningServer start(ServerFlags flags, EndpointFlags endpoints, CommandContext context)
            throws StartException, InterruptedException {
        endpoints.check();
        endpoints.grpc.readEnvironment(context.environment());
        Ports.check(endpoints); // before models are loaded, which may take minutes
        context.shutdown().limit(flags.options.exitTimeout.plus(MARGIN));
        // Transports and models are independent until both are ready: two cores start them at once.
        int loopCount = endpoints.http.eventLoops(context.host().processors());
        CompletableFuture<EventLoops> loops = CompletableFuture.supplyAsync(() -> EventLoops.start(loopCount));
        try {
            NereidServer server = flags.start(context);
            try {
                awaitModels(server, flags, context);
                Duration delay = exitDelay(flags, endpoints);
                Duration closeTimeout = flags.options.exitTimeout.minus(delay).plus(LAST_RESPONSES);
                loops.join().watch(server, endpoints.metrics.allow);
                Ports ports = Ports.open(endpoints, loops.join(), server, closeTimeout);
                return new RunningServer(
                        context, flags.options.exitTimeout, delay, loops.join(), server, ports, flags.memoryReport());
            } catch (StartException | InterruptedException | RuntimeException e) {
                closeAfter(e, server);
                throw e;
            }
        } catch (StartException | InterruptedException | RuntimeException e) {
            loops.join().close();
            throw e;
        }
    }

    /** Returns how long the server continues to serve after a shutdown request. It is a part of the exit timeout. */
    private static Duration exitDelay(ServerFlags flags, EndpointFlags endpoints) {
        Duration configured = endpoints.connections.exitDelay();
        return configured.compareTo(flags.options.exitTimeout) < 0 ? configured : flags.options.exitTimeout;
    }

    private static void closeAfter(Exception failure, NereidServer server) {
        try {
            server.close();
        } catch (RuntimeException e) {
            failure.addSuppressed(e);
        }
    }

    private static void awaitModels(NereidServer server, ServerFlags flags, CommandContext context)
            throws StartException, InterruptedException {
        try {
            server.awaitModels();
        } catch (InferenceException e) {
            if (flags.options.exitOnError && !context.console().hasReport()) {
                throw new StartException(e.publicMessage() + EXIT_ON_ERROR, e);
            }
            if (flags.options.exitOnError) {
                String failures = BestEffort.get("start-up report", e.publicMessage(), () -> {
                    StartReport report = report(server, flags.memoryReport(), Endpoints.NONE);
                    context.console().out().print(report.text(CurlExample.Values.ZEROS));
                    return report.failures().orElse(e.publicMessage());
                });
                throw new StartException(failures + EXIT_ON_ERROR, e);
            }
        }
    }

    Endpoints endpoints() {
        return ports.endpoints();
    }

    StartReport report() {
        return report(server, memory, ports.endpoints());
    }

    private static StartReport report(NereidServer server, MemoryReport memory, Endpoints endpoints) {
        return new StartReport(
                server.backends(), server.extensions(), server.models(), server.failures(), memory, endpoints);
    }

    /**
     * Stops receiving requests, completes requests in progress, closes everything, and returns the exit status. All
     * steps share the exit timeout: the models have the time that the ports leave.
     */
    int stop() throws InterruptedException {
        long end = System.nanoTime() + exitTimeout.toNanos();
        LOG.atInfo()
                .addKeyValue("exitTimeoutSecs", exitTimeout.toSeconds())
                .addKeyValue("exitDelaySecs", exitDelay.toSeconds())
                .log("stopping");
        server.markNotReady();
        Optional<Thread> exitCaller = context.shutdown().exitCaller();
        exitCaller.ifPresent(this::abandonExecution);
        if (exitCaller.isEmpty()) { // the caller may be an event loop, which does not serve meanwhile
            new CompletableFuture<Void>()
                    .completeOnTimeout(null, exitDelay.toNanos(), TimeUnit.NANOSECONDS)
                    .join();
        }
        server.beginExit();
        // A separate thread: a busy pool must not keep the process alive.
        CompletableFuture<Void> closing = CompletableFuture.runAsync(
                () -> close(end), task -> Thread.ofPlatform().name("stop").start(task));
        try {
            await(closing, end);
            LOG.info("stopped");
            return ExitStatus.SUCCESS;
        } catch (TimeoutException e) {
            context.console().error("nereid", EXPIRED);
        } catch (ExecutionException e) {
            String reason = e.getCause() instanceof InferenceException error
                    ? error.publicMessage() // that the exit timeout expired
                    : "stop failed: " + e.getCause();
            context.console().error("nereid", reason);
        }
        return ExitStatus.FAILURE;
    }

    /** Waits for the end of the closing, and logs every second the work that it waits for. */
    private void await(CompletableFuture<Void> closing, long end)
            throws InterruptedException, ExecutionException, TimeoutException {
        while (true) {
            long left = end - System.nanoTime();
            long wait = Math.min(left + GRACE.toNanos(), REPORT_INTERVAL.toNanos());
            try {
                closing.get(wait, TimeUnit.NANOSECONDS);
                return;
            } catch (TimeoutException e) {
                if (wait < REPORT_INTERVAL.toNanos()) {
                    throw e;
                }
                BestEffort.run("line about a stop", () -> logWait(left));
            }
        }
    }

    private void logWait(long nanosLeft) {
        SortedMap<String, Integer> requests = server.requestsInFlight();
        LOG.atInfo()
                .addKeyValue("requests", requests)
                .addKeyValue("connections", ports.openConnections())
                .addKeyValue("secondsLeft", Math.max(0, TimeUnit.NANOSECONDS.toSeconds(nanosLeft)))
                .log(requests.isEmpty() ? "waiting for connections and models to close" : "waiting for requests");
    }

    /** Abandons the execution on the thread that invoked {@link System#exit}. */
    private void abandonExecution(Thread caller) {
        server.instanceOn(caller)
                .ifPresent(instance -> LOG.atError()
                        .addKeyValue("model", instance.model())
                        .addKeyValue("version", instance.version())
                        .addKeyValue("instance", instance.instance())
                        .log(
                                "execution called System.exit (model '{}', version {}, instance '{}')",
                                instance.model(),
                                instance.version(),
                                instance.instance()));
        server.abandonExecutionOn(caller);
    }

    private CompletableFuture<Void> closeRequestPorts() {
        try {
            return ports.closeRequestPorts();
        } catch (RuntimeException | Error e) {
            return CompletableFuture.failedFuture(e);
        }
    }

    /**
     * Closes the ports and then the models, even if closing the ports fails. Requests still in progress when the exit
     * timeout expires are completed by closing the models, for which the ports wait.
     */
    private void close(long end) {
        CompletableFuture<Void> portsClosed = closeRequestPorts();
        server.endSequences(); // no request of theirs arrives any more
        CompletableFuture<Void> settled = portsClosed.exceptionally(_ -> null);
        settled.copy()
                .completeOnTimeout(null, Math.max(0, end - System.nanoTime()), TimeUnit.NANOSECONDS)
                .join();
        try {
            server.closeWithin(Duration.ofNanos(Math.max(MIN_CLOSE_TIMEOUT.toNanos(), end - System.nanoTime())));
        } finally {
            settled.join(); // within the close timeout of the ports
        }
        ports.close(); // metrics are served until here
        loops.close();
        portsClosed.join(); // throws the failure of closing, if any
    }
}
