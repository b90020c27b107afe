package dev.nereid.backend.python.environment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.testkit.RecordedLog;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EnvironmentCacheTest {
    @TempDir
    Path directory;

    private final RecordedLog log = new RecordedLog();

    @Test
    void unpacksOnceUntilTheArchiveIsTouched() throws IOException {
        Path archive = archive("a", "1");
        try (EnvironmentCache cache = cache()) {
            Path first = acquire(cache, archive);
            Path second = acquire(cache, archive);
            Files.setLastModifiedTime(archive, FileTime.fromMillis(1_700_000_000_000L));
            Path third = acquire(cache, archive);
            Path fourth = acquire(cache, archive);

            assertThat(second).isEqualTo(first);
            assertThat(third).isNotEqualTo(first);
            assertThat(fourth).isEqualTo(third);
            assertThat(first.resolve("bin/activate")).hasContent("1");
        }
        assertThat(extractions())
                .hasSize(2)
                .allMatch(line -> line.equals("DEBUG Extracting Python execution env " + archive));
    }

    @Test
    void seesNewContentWithTheSameTimeAndSize() throws IOException {
        Path archive = archive("a", "1");
        FileTime time = Files.getLastModifiedTime(archive);
        try (EnvironmentCache cache = cache()) {
            Path before = acquire(cache, archive);
            archive("a", "2");
            Files.setLastModifiedTime(archive, time);

            Path after = acquire(cache, archive);

            assertThat(before.resolve("bin/activate")).hasContent("1");
            assertThat(after.resolve("bin/activate")).hasContent("2");
        }
    }

    @Test
    void laterStartsAndOtherPathsFindTheContent() throws IOException {
        Path archive = archive("a", "1");
        Path copy = Files.copy(archive, directory.resolve("copy"));
        Path first;
        try (EnvironmentCache cache = cache()) {
            first = acquire(cache, archive);
        }
        try (EnvironmentCache cache = cache()) {
            assertThat(acquire(cache, archive)).isEqualTo(first);
            assertThat(acquire(cache, copy)).isEqualTo(first);
        }
        assertThat(extractions()).hasSize(1);
    }

    @Test
    void manyThreadsUnpackOnce() throws Exception {
        Path archive = archive("a", "1");
        int threads = 8;
        CyclicBarrier start = new CyclicBarrier(threads);
        try (EnvironmentCache cache = cache();
                ExecutorService executor = Executors.newFixedThreadPool(threads)) {
            List<Callable<Path>> tasks = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                tasks.add(() -> {
                    start.await(1, TimeUnit.MINUTES);
                    return acquire(cache, archive);
                });
            }
            List<Path> found = new ArrayList<>();
            for (Future<Path> result : executor.invokeAll(tasks)) {
                found.add(result.get());
            }
            assertThat(found).hasSize(threads).containsOnly(found.getFirst());
        }
        assertThat(extractions()).hasSize(1);
    }

    @Test
    void severalCachesShareADirectory() throws Exception {
        Path archive = archive("a", "1");
        int caches = 6;
        CyclicBarrier start = new CyclicBarrier(caches);
        try (ExecutorService executor = Executors.newFixedThreadPool(caches)) {
            List<Callable<Boolean>> tasks = new ArrayList<>();
            for (int i = 0; i < caches; i++) {
                tasks.add(() -> {
                    try (EnvironmentCache cache = cache()) {
                        start.await(1, TimeUnit.MINUTES);
                        return Files.exists(acquire(cache, archive).resolve("bin/activate"));
                    }
                });
            }
            for (Future<Boolean> result : executor.invokeAll(tasks)) {
                assertThat(result.get()).isTrue();
            }
        }
        assertThat(names()).noneMatch(name -> name.endsWith(".part") || name.endsWith(".lock"));
    }

    @Test
    void keepsTheLastUnusedOnes() throws IOException {
        List<Path> unpacked = new ArrayList<>();
        try (EnvironmentCache cache = cache()) {
            EnvironmentCache.Lease held = cache.acquire(archive("held", "held"), log);
            for (int i = 0; i < EnvironmentCache.MAX_UNUSED + 3; i++) {
                try (EnvironmentCache.Lease lease = cache.acquire(archive("a" + i, "content " + i), log)) {
                    unpacked.add(lease.directory());
                    Files.setLastModifiedTime(lease.directory(), FileTime.fromMillis(1_000_000L * i));
                }
            }
            assertThat(held.directory()).exists();
            assertThat(unpacked.stream().filter(Files::exists)).hasSize(EnvironmentCache.MAX_UNUSED);
            assertThat(unpacked.getFirst()).doesNotExist();
            assertThat(unpacked.getLast()).exists();
        }
    }

    @Test
    void keepsWhatAnotherServerUses() throws Exception {
        Path archive = archive("a", "1");
        Path used;
        try (EnvironmentCache cache = cache()) {
            used = acquire(cache, archive);
        }
        Path environments = directory.resolve("cache/environments");
        Path uses = Files.createDirectories(environments.resolve(used.getFileName() + ".use"));
        Files.writeString(uses.resolve("1-2-other"), "");
        Files.setLastModifiedTime(used, FileTime.fromMillis(0));
        Path lock = Files.writeString(environments.resolve("1-2-other.lock"), "");
        Process other = new ProcessBuilder(
                        "python3",
                        "-c",
                        "import fcntl,sys; f=open(sys.argv[1],'r+'); fcntl.lockf(f,fcntl.LOCK_EX); print('locked',flush=True);"
                                + " sys.stdin.read()",
                        lock.toString())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        try {
            assertThat(other.inputReader().readLine()).isEqualTo("locked");
            useMany();
            assertThat(used).exists();
        } finally {
            other.destroyForcibly().waitFor();
        }
        Files.setLastModifiedTime(used, FileTime.fromMillis(0));
        useMany();
        assertThat(used).doesNotExist();
        assertThat(lock).doesNotExist();
    }

    private void useMany() throws IOException {
        try (EnvironmentCache cache = cache()) {
            for (int i = 0; i < EnvironmentCache.MAX_UNUSED + 1; i++) {
                cache.acquire(archive("m" + i, "many " + i + System.nanoTime()), log)
                        .close();
            }
        }
    }

    @Test
    void removesWhatAKilledServerLeft() throws IOException {
        Path environments = Files.createDirectories(directory.resolve("cache/environments"));
        Path part = environments.resolve("key.1-2-dead-00000000-0000-0000-0000-000000000000.part");
        Files.createDirectories(part.resolve("bin"));
        Files.writeString(environments.resolve("1-2-dead.lock"), "");

        try (EnvironmentCache cache = cache()) {
            acquire(cache, archive("a", "1"));
        }

        assertThat(names()).noneMatch(name -> name.contains("dead"));
    }

    @Test
    void replacesADamagedDirectory() throws IOException {
        Path archive = archive("a", "1");
        Path first;
        try (EnvironmentCache cache = cache()) {
            first = acquire(cache, archive);
        }
        FileTrees.remove(first.resolve("bin"));

        try (EnvironmentCache cache = cache()) {
            assertThat(acquire(cache, archive).resolve("bin/activate")).hasContent("1");
        }
    }

    @Test
    void aRefusedArchiveLeavesNothingAndIsTriedAgain() throws IOException {
        Path archive = new TarArchive().file("../f", "x").gzip(directory.resolve("a.tar.gz"));
        try (EnvironmentCache cache = cache()) {
            for (int i = 0; i < 2; i++) {
                assertThatThrownBy(() -> cache.acquire(archive, log))
                        .isInstanceOf(BackendException.class)
                        .hasMessage(
                                "Failed to extract Python execution env " + archive + ": Path contains '..': '../f'");
            }
            archive("a", "1");
            assertThat(acquire(cache, archive).resolve("bin/activate")).exists();
        }
        assertThat(names()).noneMatch(name -> name.endsWith(".part"));
    }

    @Test
    void logsProgressOfLargeArchives() throws IOException {
        AtomicLong clock = new AtomicLong();
        Path archive = archive("a", "1");
        try (EnvironmentCache cache =
                new EnvironmentCache(directory.resolve("cache"), () -> clock.addAndGet(TimeUnit.SECONDS.toNanos(20)))) {
            acquire(cache, archive);
        }
        assertThat(log.lines()).anyMatch(line -> line.matches("INFO Python execution env .* % of 1 MiB unpacked"));
    }

    @Test
    void refusesArchivesOnceItIsClosed() throws IOException {
        EnvironmentCache cache = cache();
        cache.close();
        Path archive = archive("a", "1");

        assertThatThrownBy(() -> cache.acquire(archive, log)).hasMessageContaining("closed");
    }

    private EnvironmentCache cache() {
        return new EnvironmentCache(directory.resolve("cache"), System::nanoTime);
    }

    private Path acquire(EnvironmentCache cache, Path archive) {
        return cache.acquire(archive, log).directory();
    }

    private Path archive(String name, String content) {
        return new TarArchive()
                .directory("bin", 0755)
                .file("bin/activate", content)
                .gzip(directory.resolve(name + ".tar.gz"));
    }

    private List<String> extractions() {
        return log.lines().stream().filter(line -> line.contains("Extracting")).toList();
    }

    private List<String> names() throws IOException {
        try (Stream<Path> all = Files.list(directory.resolve("cache/environments"))) {
            return all.map(path -> path.getFileName().toString()).toList();
        }
    }
}
