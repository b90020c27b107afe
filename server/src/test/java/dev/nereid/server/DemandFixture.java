package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.MemoryPlace;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * A server in the demand mode with models of the recording backend. {@link #MEGABYTE} makes a model report a million
 * bytes of memory; others are estimated to take 512 KiB.
 *
 * @param directory holds models, plugins and the events of the backend
 */
record DemandFixture(Path directory) {
    static final String MEGABYTE = parameter("memory_bytes", "1000000");

    /** Creates an empty repository and the plugin of the backend. */
    static DemandFixture in(Path directory) throws IOException {
        TestPlugins.recording(Files.createDirectories(directory.resolve("plugins")));
        Files.createDirectories(directory.resolve("models"));
        return new DemandFixture(directory);
    }

    TestModels models() {
        return new TestModels(directory.resolve("models"));
    }

    long executions() throws IOException {
        return events().stream().filter(event -> event.startsWith("execute ")).count();
    }

    static InferRequest request(NereidServer server, String model, RequestOptions options) {
        TensorBuffer memory = server.memory().allocate(Float.BYTES);
        InputTensor tensor = InputTensor.of("INPUT0", "FP32", new long[] {1, 1}, memory.segment(), MemoryPlace.HOST);
        return new InferRequest(
                ModelRef.latest(model), "", List.of(tensor), List.of(), Map.of(), options, memory::close);
    }

    /** Waits for longer than the server keeps a use unwritten. */
    static void pause() throws Exception {
        long until = System.nanoTime() + 3_000_000;
        await(() -> System.nanoTime() - until > 0);
    }

    interface Condition {
        boolean holds() throws Exception;
    }

    static void await(Condition condition) throws Exception {
        long end = System.nanoTime() + Duration.ofSeconds(20).toNanos();
        while (!condition.holds()) {
            assertThat(System.nanoTime() - end).as("time left").isNegative();
            Thread.onSpinWait();
        }
    }

    static List<Float> infer(NereidServer server, String model, float value) {
        return RecordingObserver.to(server, model, value).response().values();
    }

    List<String> events() throws IOException {
        return Files.readAllLines(directory.resolve("events"));
    }

    List<String> loads() throws IOException {
        List<String> loads = new ArrayList<>(events());
        loads.removeIf(event -> !event.startsWith("load "));
        return loads;
    }

    NereidServer start(long budget, String... pinned) throws InterruptedException, InferenceException {
        return NereidServer.start(options(o -> o.memoryBudget = budget, pinned));
    }

    ServerOptions options(Consumer<ServerOptions.Builder> change, String... pinned) {
        return options(ServerOptions.of(models().root()), change, pinned);
    }

    ServerOptions options(ServerOptions repositories, Consumer<ServerOptions.Builder> change, String... pinned) {
        return repositories
                .withPlugins(directory.resolve("plugins"))
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> {
                    o.onDemand(pinned);
                    o.processors = 2;
                    change.accept(o);
                });
    }
}
