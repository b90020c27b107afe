package dev.nereid.repository;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Remote repositories that cannot be reached, or not in time, beside local ones. */
@Timeout(60)
final class RemoteScanTest {
    private static final String URL = "fake://box";

    @TempDir
    private Path directory;

    private final Store store = new Store();
    private ModelRepository repository;

    @BeforeEach
    void setUp() throws IOException {
        Files.createDirectories(directory.resolve("local/1"));
        store.models.put("far", "1");
        repository = repository(Duration.ofSeconds(30));
    }

    private ModelRepository repository(Duration usual) {
        return new ModelRepository(
                List.of(directory), List.of(store), false, new RemoteScan.Patience(usual, Duration.ofMillis(1)));
    }

    @Test
    void listsLocalModelsWhateverFails() {
        store.failure = Optional.of(new InferenceException(ErrorCode.UNAVAILABLE, "no route to the box"));

        ModelRepository.Scan scan = repository.scan();

        assertThat(scan.models()).extracting(ModelLocation::name).containsExactly("local");
        assertThat(scan.unreachable()).containsExactly(Map.entry(URL, "no route to the box"));
    }

    /** So that the models of a repository that cannot be reached for a while are not taken for deleted. */
    @Test
    void remembersTheModelsOfTheLastListing() {
        assertThat(repository.scan().models()).extracting(ModelLocation::name).containsExactly("far", "local");
        repository.retain(Set.of("far"));
        assertThat(store.retained).containsExactly(Set.of("far"));
        store.failure = Optional.of(new InferenceException(ErrorCode.UNAVAILABLE, "no route to the box"));
        store.models.clear();

        assertThat(repository.scan().models()).extracting(ModelLocation::name).containsExactly("far", "local");
        assertThat(repository.scan().unreachable()).containsKey(URL);
        repository.retain(Set.of());
        assertThat(store.retained).as("its copies stay").hasSize(1);

        store.failure = Optional.empty();
        store.models.put("new", "1");
        while (!repository.scan().unreachable().isEmpty()) {
            Thread.onSpinWait(); // while it fails, a scan is awaited for a moment only
        }
        assertThat(repository.scan().models()).extracting(ModelLocation::name).containsExactly("local", "new");
    }

    @Test
    void keepsTheCopiesOfARepositoryThatWasNeverListed() {
        store.failure = Optional.of(new InferenceException(ErrorCode.UNAVAILABLE, "no route to the box"));
        repository.scan();

        repository.retain(Set.of("local"));

        assertThat(store.retained).isEmpty();
    }

    @Test
    void findsLocalModelsWhateverFails() {
        store.failure = Optional.of(new InferenceException(ErrorCode.UNAVAILABLE, "no route to the box"));

        assertThat(repository.find("local")).hasSize(1);
        assertThatThrownBy(() -> repository.find("far"))
                .isInstanceOf(InferenceException.class)
                .hasMessage("no route to the box");
    }

    @Test
    void waitsForALimitedTimeAndThenForAMoment() {
        store.gate = new CompletableFuture<>();
        repository = repository(Duration.ofMillis(50));

        assertThat(repository.find("local")).hasSize(1);
        assertThat(repository.scan().models()).extracting(ModelLocation::name).containsExactly("local");
        assertThat(repository.scan().unreachable().get(URL))
                .isEqualTo(
                        "model repository 'fake://box': cannot be reached: no response after 50 ms (it is tried again"
                                + " by itself)");
        assertThatThrownBy(() -> repository.find("far")).hasMessageContaining("no response after 50 ms");

        store.gate.complete(null);
        while (repository.scan().models().size() < 2) {
            Thread.onSpinWait();
        }
        assertThat(repository.find("far")).hasSize(1);
    }

    @Test
    void asksOnlyAFewTimesAtOnce() {
        store.gate = new CompletableFuture<>();
        repository = repository(Duration.ofMillis(1));
        for (int i = 0; i < 100; i++) {
            assertThat(repository.find("local")).hasSize(1);
            repository.scan();
        }

        assertThat(store.scans.get()).as("one listing and searches for models").isLessThanOrEqualTo(17);
        store.gate.complete(null);
    }

    /** A listing that takes longer than a caller waits, as that of a large repository, is used when it is complete. */
    @Test
    void usesAListingThatTakesLong() {
        repository.scan();
        store.gate = new CompletableFuture<>();
        repository = repository(Duration.ofMillis(1));
        CompletableFuture<ModelRepository.Scan> patient = CompletableFuture.supplyAsync(
                repository::scanAll, task -> Thread.ofVirtual().start(task));

        repository.scan();
        store.gate.complete(null);

        assertThat(patient.join().models()).extracting(ModelLocation::name).containsExactly("far", "local");
        assertThat(patient.join().unreachable()).isEmpty();
    }

    @Test
    void reportsAFaultOfTheStorage() {
        store.fault = Optional.of(new IllegalStateException("a bug"));

        assertThat(repository.scan().unreachable().get(URL))
                .contains("internal error")
                .contains("a bug");
        assertThat(repository.find("local")).hasSize(1);
    }

    /** A remote repository without files. */
    private static final class Store implements RepositoryRoot {
        private final NavigableMap<String, String> models = new TreeMap<>();
        private final List<Set<String>> retained = new CopyOnWriteArrayList<>();
        private final AtomicInteger scans = new AtomicInteger();
        private volatile Optional<InferenceException> failure = Optional.empty();
        private volatile Optional<IllegalStateException> fault = Optional.empty();
        private volatile CompletableFuture<Void> gate = CompletableFuture.completedFuture(null);

        private void access() {
            scans.incrementAndGet();
            gate.join();
            if (failure.isPresent()) {
                throw failure.get();
            }
            if (fault.isPresent()) {
                throw fault.get();
            }
        }

        @Override
        public String location() {
            return URL;
        }

        @Override
        public Path directory() {
            return Path.of("copies");
        }

        @Override
        public NavigableMap<String, String> scan() {
            access();
            return new TreeMap<>(models);
        }

        @Override
        public Optional<String> fingerprint(String model) {
            access();
            return Optional.ofNullable(models.get(model));
        }

        @Override
        public ModelCopy fetch(String model) {
            throw new AssertionError("nothing is copied");
        }

        @Override
        public void retain(Iterable<String> names) {
            List<String> all = new ArrayList<>();
            names.forEach(all::add);
            retained.add(Set.copyOf(all));
        }
    }
}
