package dev.nereid.benchmarks.load;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.run.Workload;
import dev.nereid.spi.MemoryPlace;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;

/**
 * Workload on a server within this process, with a fixed number of requests in flight. Owned by, and confined to, the
 * thread that measures.
 */
public final class EmbeddedLoad implements Workload, AutoCloseable {
    /** As memory of the server's own. */
    private static final long ALIGNMENT = 64;

    private final String name;
    private final Arena arena = Arena.ofShared();
    private final List<EmbeddedLane> lanes;

    /**
     * Prepares a load.
     *
     * @param name the row of the table
     * @param server the server under load
     * @param inFlight how many calls are in flight
     * @param counted which calls count
     */
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
     * @param name the row of the table
     * @param server the server under load
     * @param inFlight how many calls are in flight
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
        MemorySegment content = MemorySegment.ofBuffer(body.tensor());
        MemorySegment data = arena.allocate(content.byteSize(), ALIGNMENT).copyFrom(content);
        List<InputTensor> inputs =
                List.of(InputTensor.of(body.input(), InferBody.TYPE, body.shape(), data, MemoryPlace.HOST));
        InferRequest call = InferRequest.of(ModelRef.latest(model), inputs, () -> {});
        lanes = Stream.generate(() -> new EmbeddedLane(server, call, counted, onInstanceThreads))
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
