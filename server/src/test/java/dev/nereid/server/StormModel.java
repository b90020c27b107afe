package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.stream.Collectors;

/**
 * The expected state of one model of a storm: a small model of the repository and of the rules of loads. Its lock is
 * held for writing by a thread that knows the state and changes it step by step, and for reading by threads that race.
 */
final class StormModel {
    static final String FILE = """
            backend: "twice"
            max_batch_size: 4
            version_policy { latest { num_versions: 2 } }
            input { name: "INPUT" data_type: TYPE_FP32 dims: [ -1 ] }
            output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ -1 ] }
            """;
    private static final String CONFIG = """
            {"backend": "%s", "max_batch_size": 4, "version_policy": {"specific": {"versions": [%d]}},
             "input": [{"name": "INPUT", "data_type": "TYPE_FP32", "dims": [-1]}],
             "output": [{"name": "OUTPUT", "data_type": "TYPE_FP32", "dims": [-1]}]}
            """;
    private static final int NUM_VERSIONS = 2;
    private static final int STEPS = 4;

    final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
    private final String name;
    private final TestModels files;

    /** The versions in the repository. Those that race read it too, and use version 1 alone, which stays. */
    private final SortedSet<Long> present = new TreeSet<>(List.of(1L, 2L));

    private long newest = 2;
    private SortedSet<Long> served = new TreeSet<>();

    /** The version that a client's configuration selects, and the versions that were in the repository with it. */
    private Optional<Long> given = Optional.empty();

    private SortedSet<Long> presentWhenGiven = new TreeSet<>();

    StormModel(String name, TestModels files) {
        this.name = name;
        this.files = files.model(name, FILE, 1, 2);
    }

    String name() {
        return name;
    }

    /** Does something while others may do the same. Only the form of the outcome is known. */
    void race(NereidServer server, Random random) throws Exception {
        switch (random.nextInt(6)) {
            case 0 -> await(server.control().load(plain(name)));
            case 1 -> await(server.control().load(configured(name, "twice", 1)));
            case 2 -> await(server.control().unload(name, random.nextBoolean()));
            case 3 ->
                assertThat(failure(server.control().load(configured(name, "no", 1))))
                        .isNotEmpty();
            case 4 ->
                assertThat(server.control().index().toCompletableFuture().get()).anyMatch(this::isOfThis);
            default -> {
                RecordingObserver observer = send(server, ModelRef.latest(name));
                if (observer.isFailed()) {
                    assertRefused(ModelRef.latest(name), observer);
                }
            }
        }
    }

    /** Brings the model into a known state, changes it, and compares what serves and what the index says each time. */
    void compare(NereidServer server, Random random) throws Exception {
        unload(server);
        check(server);
        for (int step = 0; step < STEPS; step++) {
            change(server, random);
            check(server);
        }
    }

    private void change(NereidServer server, Random random) throws Exception {
        switch (random.nextInt(8)) {
            case 0, 1 -> loadPlainly(server, random.nextBoolean());
            case 2 -> loadConfigured(server, pick(random));
            case 3 -> fail(server);
            case 4 -> loadWithFiles(server);
            case 5 -> addVersion();
            case 6 -> removeVersion(random);
            default -> unload(server);
        }
    }

    private void loadPlainly(NereidServer server, boolean isForced) throws Exception {
        await(server.control().load(isForced ? plain(name).forced() : plain(name)));
        if (given.isPresent() && presentWhenGiven.equals(present)) {
            served = new TreeSet<>(List.of(given.get()));
        } else {
            given = Optional.empty();
            served = present.stream()
                    .skip(Math.max(0, present.size() - NUM_VERSIONS))
                    .collect(Collectors.toCollection(TreeSet::new));
        }
    }

    private void loadConfigured(NereidServer server, long version) throws Exception {
        await(server.control().load(configured(name, "twice", version)));
        given = Optional.of(version);
        presentWhenGiven = new TreeSet<>(present);
        served = new TreeSet<>(List.of(version));
    }

    private void loadWithFiles(NereidServer server) throws Exception {
        await(server.control()
                .load(new ModelControl.Load(
                        name,
                        Optional.of(CONFIG.formatted("twice", 1)),
                        Map.of("1/a", ByteBuffer.wrap(new byte[100])))));
        given = Optional.empty();
        served = new TreeSet<>(List.of(1L));
    }

    private void fail(NereidServer server) throws Exception {
        assertThat(failure(server.control().load(configured(name, "no", 1))))
                .startsWith("load failed for model '" + name + "': version 1 is at UNAVAILABLE state: ");
        if (served.isEmpty()) {
            unload(server); // the failure is shown until then
        }
    }

    private void unload(NereidServer server) throws Exception {
        await(server.control().unload(name, false));
        served = new TreeSet<>();
        given = Optional.empty();
    }

    private void addVersion() throws IOException {
        newest++;
        present.add(newest);
        Files.createDirectory(files.root().resolve(name).resolve(Long.toString(newest)));
    }

    private void removeVersion(Random random) throws IOException {
        long version = pick(random);
        if (version > 1) {
            present.remove(version);
            Files.delete(files.root().resolve(name).resolve(Long.toString(version)));
        }
    }

    private long pick(Random random) {
        return List.copyOf(present).get(random.nextInt(present.size()));
    }

    private void check(NereidServer server) throws Exception {
        checkServed(server, served);
        assertThat(ready(server.control().index().toCompletableFuture().get()))
                .as("index of %s", name)
                .isEqualTo(served);
    }

    /** Compares what serves with what the index says, while nothing loads or unloads. */
    void checkAgainst(NereidServer server, List<ModelStatus> index) {
        checkServed(server, ready(index));
    }

    private void checkServed(NereidServer server, SortedSet<Long> expected) {
        infer(server, ModelRef.latest(name), expected.isEmpty() ? 0 : expected.last());
        for (long version = 1; version <= newest; version++) {
            ModelRef ref = new ModelRef(name, version);
            boolean isServed = expected.contains(version);
            infer(server, ref, isServed ? version : 0);
            assertThat(isReady(server, ref)).as("readiness of %s", ref).isEqualTo(isServed);
        }
    }

    private SortedSet<Long> ready(List<ModelStatus> index) {
        return index.stream()
                .filter(this::isOfThis)
                .filter(status -> status.state() == ModelStatus.State.READY)
                .map(status -> status.version().orElseThrow())
                .collect(Collectors.toCollection(TreeSet::new));
    }

    private boolean isOfThis(ModelStatus status) {
        return status.name().equals(name);
    }

    /** Sends a request that some version responds to. */
    static void infer(NereidServer server, ModelRef model) {
        assertThat(send(server, model).response().values()).containsExactly(2f, 4f);
    }

    /** Sends a request that one version responds to, or none if that is 0. */
    private static void infer(NereidServer server, ModelRef model, long version) {
        RecordingObserver observer = send(server, model);
        if (version == 0) {
            assertRefused(model, observer);
        } else {
            RecordingObserver.Values values = observer.response();
            assertThat(values.values()).containsExactly(2f, 4f);
            assertThat(values.version()).as("response of %s", model).isEqualTo(version);
        }
    }

    private static RecordingObserver send(NereidServer server, ModelRef model) {
        RecordingObserver observer = RecordingObserver.to(server, model, "INPUT", new long[] {1, 2}, 1, 2);
        observer.await();
        assertThat(observer.terminals()).isEqualTo(1);
        return observer;
    }

    private static void assertRefused(ModelRef model, RecordingObserver observer) {
        assertThat(observer.isFailed()).as("%s is refused", model).isTrue();
        assertThat(observer.error().code())
                .as("error of %s", model)
                .isIn(
                        model.version() == ModelRef.LATEST
                                ? List.of(ErrorCode.NOT_FOUND)
                                : List.of(ErrorCode.NOT_FOUND, ErrorCode.UNAVAILABLE));
    }

    static boolean isReady(NereidServer server, ModelRef model) {
        try {
            return server.models().isReady(model);
        } catch (InferenceException e) {
            return false;
        }
    }

    static ModelControl.Load plain(String model) {
        return new ModelControl.Load(model, Optional.empty(), Map.of());
    }

    static ModelControl.Load configured(String model, String backend, long version) {
        return new ModelControl.Load(model, Optional.of(CONFIG.formatted(backend, version)), Map.of());
    }

    static void await(CompletionStage<Void> stage) throws Exception {
        stage.toCompletableFuture().get(60, TimeUnit.SECONDS);
    }

    static String failure(CompletionStage<Void> stage) throws Exception {
        try {
            await(stage);
            return "";
        } catch (ExecutionException e) {
            return String.valueOf(e.getCause().getMessage());
        }
    }
}
