package dev.nereid.benchmarks.load;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceServer;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.run.Workload;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;

/**
 * Workload on a server within this process, with a fixed number of requests in flight. Owned by, and confined to, the
 * thread that measures.
 */
public final class EmbeddedLoad implements Workload, AutoCloseable {
    private final String name;
    private final Arena arena = Arena.ofShared();
    private final List<EmbeddedLane> lanes;

    /** Prepares a load with requests that any thread may execute, else as the other constructor. */
    public EmbeddedLoad(
            String name,
            InferenceServer server,
            String model,
            InferBody body,
            int inFlight,
            EmbeddedLane.Ending counted) {
        this(name, server, model, body, inFlight, counted, false);
    }

    /**
     * Prepares a load.
     *
     * @param counted which calls count
     * @param onInstanceThreads whether no request may be executed by a thread that sends it
     */
    public EmbeddedLoad(
            String name,
            InferenceServer server,
            String model,
            InferBody body,
            int inFlight,
            EmbeddedLane.Ending counted,
            boolean onInstanceThreads) {
        this.name = name;
        InferRequest request = body.request(model, arena);
        lanes = Stream.generate(() -> new EmbeddedLane(server, request, counted, onInstanceThreads))
                .limit(inFlight)
                .toList();
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Sample load(Duration time) throws IOException, InterruptedException {
        return Lane.run(name, lanes, time);
    }

    @Override
    public void close() {
        arena.close();
    }
}
