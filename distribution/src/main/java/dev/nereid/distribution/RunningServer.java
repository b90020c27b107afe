package dev.nereid.distribution;

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

    /** What ending the process may take beyond the time that requests get to end. */
    private static final Duration MARGIN = Duration.ofSeconds(5);

    /** What models get to close even if the ports took all of that time, which says nothing about the models. */
    private static final Duration MIN_CLOSE_TIMEOUT = Duration.ofSeconds(1);

    /**
     * How much longer than that time the ports wait for answers. What is left at its end is answered within two such
     * moments, that of the models and that of their withdrawal, and has to reach its clients.
     */
    private static final Duration LAST_RESPONSES =
            MIN_CLOSE_TIMEOUT.plus(MIN_CLOSE_TIMEOUT).plusMillis(500);

    /** What closing may take beyond that time: the last answers, a second of gRPC's for its last calls, and a rest. */
    private static final Duration GRACE = LAST_RESPONSES.plusMillis(1500);

    /** What is said of a stop that takes too long, by the reference server as well. */
    private static final String EXPIRED = "Exit timeout expired. Exiting immediately.";

    private final CommandContext context;
    private final Duration exitTimeout;
    private final Duration exitDelay;
    private final EventLoops loops;
    private final NereidServer server;
    private final Ports ports;
    private final MemoryReport memory;

    private RunningServer(
            CommandContext surroundings,
            Duration exitTimeout,
            Duration exitDelay,
            EventLoops loops,
            NereidServer server,
            Ports ports,
            MemoryReport memory) {
        this.context = surroundings;
        this.memory = memory;
        this.exitTimeout = exitTimeout;
        this.exitDelay = exitDelay;
        this.loops = loops;
        this.server = server;
        this.ports = ports;
    }

    /**
     * Starts a server and opens its ports.
     *
     * @param flags what it serves, and how
     * @param endpoints where it listens
     * @param surroundings the process
     * @return the server, ready to be asked
     * @throws StartException if something that the user named cannot be had; nothing is left open
     */
    static RunningServer start(ServerFlags flags, EndpointFlags endpoints, CommandContext surroundings)
            throws StartException, InterruptedException {
        endpoints.check();
        endpoints.grpc.readEnvironment(surroundings.environment());
        surroundings.shutdown().limit(flags.exitTimeout().plus(MARGIN));
        // Transports and models have nothing to do with each other until both are there: two cores start them at once.
        int loopCount = endpoints.http.eventLoops(surroundings.host().processors());
        CompletableFuture<EventLoops> loops = CompletableFuture.supplyAsync(() -> EventLoops.start(loopCount));
        try {
            NereidServer server = flags.start(surroundings);
            try {
                awaitModels(server, flags, surroundings);
                Duration delay = exitDelay(flags, endpoints);
                Duration closeTimeout = flags.exitTimeout().minus(delay).plus(LAST_RESPONSES);
                loops.join().watch(server);
                Ports ports = Ports.open(endpoints, loops.join(), server, closeTimeout);
                return new RunningServer(
                        surroundings, flags.exitTimeout(), delay, loops.join(), server, ports, flags.memoryReport());
            } catch (StartException | InterruptedException | RuntimeException e) {
                closeAfter(e, server);
                throw e;
            }
        } catch (StartException | InterruptedException | RuntimeException e) {
            loops.join().close();
            throw e;
        }
    }

    /** Returns how long the server serves on once it is to stop: that is part of the time that stopping may take. */
    private static Duration exitDelay(ServerFlags flags, EndpointFlags endpoints) {
        Duration wanted = endpoints.connections.exitDelay();
        return wanted.compareTo(flags.exitTimeout()) < 0 ? wanted : flags.exitTimeout();
    }

    private static void closeAfter(Exception failure, NereidServer server) {
        try {
            server.close();
        } catch (RuntimeException e) {
            failure.addSuppressed(e);
        }
    }

    private static void awaitModels(NereidServer server, ServerFlags flags, CommandContext surroundings)
            throws StartException, InterruptedException {
        try {
            server.awaitModels();
        } catch (InferenceException e) {
            if (flags.exitOnError) {
                StartReport report =
                        new StartReport(server.backends(), server.models(), flags.memoryReport(), Endpoints.NONE);
                surroundings.console().out().print(report.text(CurlExample.Values.ZEROS));
                throw new StartException(report.failures() + "; --exit-on-error=false serves the others", e);
            }
        }
    }

    /** Returns where it listens. */
    Endpoints endpoints() {
        return ports.endpoints();
    }

    /** Returns what there is to say about its start. */
    StartReport report() {
        return new StartReport(server.backends(), server.models(), memory, ports.endpoints());
    }

    /**
     * Takes no more requests, lets those in progress end, closes everything, and returns the exit status. All of that
     * shares one time: what the ports leave of it is the models'.
     */
    int stop() throws InterruptedException {
        long end = System.nanoTime() + exitTimeout.toNanos();
        server.markNotReady();
        Optional<Thread> exitCaller = context.shutdown().exitCaller();
        exitCaller.ifPresent(this::abandonExecution);
        if (exitCaller.isEmpty()) { // which may be an event loop, and does not serve meanwhile
            new CompletableFuture<Void>()
                    .completeOnTimeout(null, exitDelay.toNanos(), TimeUnit.NANOSECONDS)
                    .join();
        }
        server.beginExit();
        // A thread of its own: whatever keeps a pool busy must not keep the process alive.
        CompletableFuture<Void> closing = CompletableFuture.runAsync(
                () -> close(end), task -> Thread.ofPlatform().name("stop").start(task));
        try {
            closing.get(end - System.nanoTime() + GRACE.toNanos(), TimeUnit.NANOSECONDS);
            return ExitStatus.SUCCESS;
        } catch (TimeoutException e) {
            context.console().err().println("nereid: " + EXPIRED);
        } catch (ExecutionException e) {
            String reason = e.getCause() instanceof InferenceException error
                    ? error.publicMessage() // that its time is over
                    : "stop failed: " + e.getCause();
            context.console().err().println("nereid: " + reason);
        }
        return ExitStatus.FAILURE;
    }

    /** Gives up what the thread was at that ended the process. */
    private void abandonExecution(Thread caller) {
        server.instanceOn(caller)
                .ifPresent(instance -> LOG.atError()
                        .addKeyValue("model", instance.model())
                        .addKeyValue("version", instance.version())
                        .addKeyValue("instance", instance.instance())
                        .log("execution ended the process"));
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
     * Closes the doors and then the models, whatever becomes of the doors. Calls that are in progress at the end of the
     * time are answered by the models, for which the doors wait.
     */
    private void close(long end) {
        CompletableFuture<Void> doors = closeRequestPorts();
        CompletableFuture<Void> over = doors.exceptionally(_ -> null);
        over.copy()
                .completeOnTimeout(null, Math.max(0, end - System.nanoTime()), TimeUnit.NANOSECONDS)
                .join();
        try {
            server.closeWithin(Duration.ofNanos(Math.max(MIN_CLOSE_TIMEOUT.toNanos(), end - System.nanoTime())));
        } finally {
            over.join(); // within the time of the ports
        }
        ports.close(); // metrics tell of the end until here
        loops.close();
        doors.join(); // throws what went wrong with them
    }
}
