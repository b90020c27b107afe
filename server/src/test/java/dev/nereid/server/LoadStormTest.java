package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.server.options.ServerOptions;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Storms of loads and unloads from many threads, compared with a small reference model of the repository, while other
 * models serve without a pause.
 *
 * <p>Half of the operations race with others on the same model; of those only the form of the outcome is known. The other
 * half have their model for themselves: they bring it into a known state first, and compare what serves and what the index
 * says after each step. From time to time the storm stops, and the whole index is compared with what serves, also of
 * models that were raced for.
 *
 * <p>{@code -Dnereid.stormSeed} repeats the choices of a run, {@code -Dnereid.stormRounds} makes it longer.
 */
@Tag("slow")
@Timeout(300)
final class LoadStormTest {
    private static final int THREADS = 16;
    private static final int MODELS = 50;
    private static final int ROUNDS = Integer.getInteger("nereid.stormRounds", 60);

    /** How many rounds of a thread there are between two reads of the whole index by that thread. */
    private static final int CALM_PERIOD = 20;

    private static final long SEED = Long.getLong("nereid.stormSeed", new Random().nextInt(1_000_000));

    /** Serves without being touched. */
    private static final String STEADY = "steady";

    /** Is loaded again and again, and never unloaded. */
    private static final String RELOADED = "reloaded";

    @TempDir
    private Path directory;

    /** Held for reading by the operations of the storm, for writing while it stops. */
    private final ReentrantReadWriteLock storm = new ReentrantReadWriteLock(true);

    private final List<StormModel> models = new ArrayList<>();
    private final AtomicLong served = new AtomicLong();
    private volatile boolean ended;

    @Test
    void servesWhatItSays() throws Exception {
        System.out.println("LoadStormTest: -Dnereid.stormSeed=" + SEED);
        Path plugins = Files.createDirectories(directory.resolve("plugins"));
        TestPlugins.twice(plugins);
        TestModels files = new TestModels(Files.createDirectories(directory.resolve("models")));
        for (int i = 0; i < MODELS; i++) {
            models.add(new StormModel("m" + i, files));
        }
        files.model(STEADY, StormModel.FILE, 1).model(RELOADED, StormModel.FILE, 1, 2);
        ServerOptions options =
                ServerOptions.of(files.root()).withPlugins(plugins).with(o -> o.explicit(STEADY, RELOADED));
        try (NereidServer server = NereidServer.start(options);
                ExecutorService threads = Executors.newCachedThreadPool()) {
            List<Future<Void>> clients = List.of(
                    threads.submit(() -> use(server, STEADY)),
                    threads.submit(() -> use(server, RELOADED)),
                    threads.submit(() -> reload(server)));
            List<Future<Void>> all = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                Random random = new Random(SEED + i);
                all.add(threads.submit(() -> storm(server, random)));
            }
            try {
                join(all);
            } finally {
                ended = true;
            }
            join(clients);
            assertThat(served).hasPositiveValue();
            checkAll(server);
            unloadAll(server);
        } catch (AssertionError | Exception e) {
            throw new AssertionError("-Dnereid.stormSeed=" + SEED + ": " + e.getMessage(), e);
        }
    }

    private static void join(List<Future<Void>> all) throws Exception {
        for (Future<Void> one : all) {
            one.get(240, TimeUnit.SECONDS);
        }
    }

    private Void storm(NereidServer server, Random random) throws Exception {
        for (int round = 1; round <= ROUNDS; round++) {
            StormModel model = models.get(random.nextInt(MODELS));
            if (random.nextBoolean()) {
                locked(model.lock.readLock(), () -> model.race(server, random));
            } else {
                locked(model.lock.writeLock(), () -> model.compare(server, random));
            }
            if (round % CALM_PERIOD == 0) {
                checkAll(server);
            }
        }
        return null;
    }

    /** An operation of the storm. */
    @FunctionalInterface
    private interface Operation {
        void run() throws Exception;
    }

    private void locked(Lock lock, Operation operation) throws Exception {
        lock.lock();
        try {
            storm.readLock().lock();
            try {
                operation.run();
            } finally {
                storm.readLock().unlock();
            }
        } finally {
            lock.unlock();
        }
    }

    /** Stops the storm, and compares the index with what serves. */
    private void checkAll(NereidServer server) throws Exception {
        storm.writeLock().lock();
        try {
            List<ModelStatus> index =
                    server.control().index().toCompletableFuture().get(60, TimeUnit.SECONDS);
            for (StormModel model : models) {
                model.checkAgainst(server, index);
            }
        } finally {
            storm.writeLock().unlock();
        }
    }

    /** Sends requests to a model that always serves, and reads its readiness: neither ever fails. */
    private Void use(NereidServer server, String model) {
        ModelRef latest = ModelRef.latest(model);
        while (!ended) {
            StormModel.infer(server, latest);
            assertThat(server.models().isReady(latest)).isTrue();
            assertThat(server.models().index())
                    .as("index of %s", model)
                    .anyMatch(status -> status.name().equals(model) && status.state() == ModelStatus.State.READY);
            served.incrementAndGet();
        }
        return null;
    }

    private Void reload(NereidServer server) throws Exception {
        for (int turn = 0; !ended; turn++) {
            if (turn % 3 == 2) {
                assertThat(StormModel.failure(server.control().load(StormModel.configured(RELOADED, "no", 1))))
                        .isNotEmpty();
            } else {
                StormModel.await(server.control().load(StormModel.configured(RELOADED, "twice", 1 + turn % 3)));
            }
        }
        return null;
    }

    private void unloadAll(NereidServer server) throws Exception {
        for (String model : server.models().index().stream()
                .map(ModelStatus::name)
                .distinct()
                .toList()) {
            StormModel.await(server.control().unload(model, false));
        }
        while (server.models().index().stream().anyMatch(status -> status.state() != ModelStatus.State.UNAVAILABLE)) {
            Thread.onSpinWait(); // until the last generation is closed
        }
        assertThat(server.models().index()).allMatch(status -> status.reason().equals("unloaded"));
        assertThat(server.isReady()).isTrue();
        assertThat(instanceThreads()).isZero();
    }

    private static long instanceThreads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("instance/m")
                        || thread.getName().startsWith("instance/" + STEADY)
                        || thread.getName().startsWith("instance/" + RELOADED))
                .count();
    }
}
