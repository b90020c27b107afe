package dev.nereid.repository.storage;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.repository.ModelCopy;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Comparator;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests that a process may end at any moment: the next one serves complete copies only, whatever it finds.
 */
@Tag("slow")
@org.junit.jupiter.api.Tag("slow")
final class RemoteRepositoryCrashTest {
    private static final String URL = "fake://bucket/models";
    private static final Map<String, String> FIRST =
            Map.of("config.pbtxt", "config", "1/model.bin", "the first content", "1/labels.txt", "labels");
    private static final Map<String, String> SECOND =
            Map.of("config.pbtxt", "config", "1/model.bin", "another content, which is longer", "2/model.bin", "new");

    @TempDir
    private Path base;

    /** Ends the process at each operation of a copy, of an update and of the deletion that follows. */
    @Test
    void servesCompleteCopiesAfterAnEndAtAnyOperation() throws IOException {
        int operations = 0;
        boolean ended = true;
        while (ended) {
            Path directory = Files.createDirectory(base.resolve("run" + operations));
            FakeStorage storage = storage(FIRST);
            ended = endsAt(operations, directory, storage);

            try (RemoteRepository next = open(directory, storage, new LocalFiles.Disk())) {
                assertNothingIncomplete(next);
                try (ModelCopy copy = next.fetch("m")) {
                    assertThat(RemoteRepositoryTest.contents(copy))
                            .as("end at operation %d", operations)
                            .isEqualTo(present(storage));
                }
                assertNothingIncomplete(next);
            }
            operations++;
        }
        assertThat(operations)
                .as("operations of a copy, its update and a deletion")
                .isGreaterThan(40);
    }

    /** Random failures of the storage, ends of the process and changes of the model, in random order. */
    @Property(tries = 60)
    void servesWhatTheStorageHasAfterRandomFailures(@ForAll Random random) throws IOException {
        Path directory = Files.createTempDirectory("nereid-copies");
        try {
            Map<String, String> content = FIRST;
            FakeStorage storage = storage(content);
            for (int step = 0; step < 12; step++) {
                if (random.nextInt(3) == 0) {
                    content = content.equals(FIRST) ? SECOND : FIRST;
                    replace(storage, content);
                }
                storage.breakAfter = random.nextInt(10);
                storage.breaks.set(random.nextInt(5));
                EndingFiles files = new EndingFiles(random.nextInt(60));
                try (RemoteRepository repository = open(directory, storage, files)) {
                    assertNothingIncomplete(repository);
                    for (int fetch = 0; fetch < 3; fetch++) {
                        try (ModelCopy copy = repository.fetch("m")) {
                            assertThat(RemoteRepositoryTest.contents(copy)).isEqualTo(content);
                        } catch (InferenceException e) {
                            assertThat(e.publicMessage()).contains("connection lost");
                        }
                    }
                } catch (ProcessEnd e) {
                    // the next step starts anew
                }
            }
            storage.breaks.set(0);
            try (RemoteRepository repository = open(directory, storage, new LocalFiles.Disk());
                    ModelCopy copy = repository.fetch("m")) {
                assertThat(RemoteRepositoryTest.contents(copy)).isEqualTo(content);
            }
        } finally {
            new LocalFiles.Disk().delete(directory);
        }
    }

    /** Returns whether the process ended before all was done. */
    private static boolean endsAt(int operation, Path directory, FakeStorage storage) throws IOException {
        try (RemoteRepository repository = open(directory, storage, new EndingFiles(operation))) {
            ModelCopy first = repository.fetch("m");
            replace(storage, SECOND);
            ModelCopy second = repository.fetch("m");
            first.close();
            second.close();
            repository.retain(Set.of());
            return false;
        } catch (ProcessEnd e) {
            return true;
        }
    }

    private static RemoteRepository open(Path directory, FakeStorage storage, LocalFiles files) throws IOException {
        return RemoteRepository.open(URL, storage, directory, files, StorageLimits.DEFAULT, () -> 0);
    }

    private static FakeStorage storage(Map<String, String> content) {
        FakeStorage storage = new FakeStorage();
        replace(storage, content);
        return storage;
    }

    private static void replace(FakeStorage storage, Map<String, String> content) {
        for (String file : FIRST.keySet()) {
            storage.remove("m/" + file);
        }
        for (String file : SECOND.keySet()) {
            storage.remove("m/" + file);
        }
        content.forEach((file, text) -> storage.put("m/" + file, text));
    }

    private static Map<String, String> present(FakeStorage storage) {
        return storage.contains("m/2/model.bin") ? SECOND : FIRST;
    }

    private static void assertNothingIncomplete(RemoteRepository repository) throws IOException {
        try (Stream<Path> partial = Files.list(repository.directory().resolve("partial"))) {
            assertThat(partial).isEmpty();
        }
        try (Stream<Path> copies = Files.list(repository.directory().resolve("copies"))) {
            for (Path copy : copies.toList()) {
                CopyManifest manifest = CopyManifest.read(copy).orElseThrow();
                assertThat(manifest.isOf(copy)).as("%s", copy).isTrue();
            }
        }
    }

    /** The end of the process: no operation has an effect any more. */
    private static final class ProcessEnd extends Error {
        private static final long serialVersionUID = 1L;
    }

    /** Files on a disk until the process ends. Confined to the test's thread. */
    private static final class EndingFiles implements LocalFiles {
        private final LocalFiles files = new LocalFiles.Disk();
        private int left;

        EndingFiles(int operations) {
            left = operations;
        }

        private void count() {
            if (left == 0) {
                throw new ProcessEnd();
            }
            left--;
        }

        @Override
        public void createDirectory(Path directory) throws IOException {
            count();
            files.createDirectory(directory);
        }

        @Override
        public OutputStream create(Path file) throws IOException {
            count();
            return new FilterOutputStream(files.create(file)) {
                @Override
                public void write(byte[] bytes, int offset, int length) throws IOException {
                    if (left == 0) {
                        out.write(bytes, offset, length / 2); // a write need not be done as a whole
                    }
                    count();
                    out.write(bytes, offset, length);
                }

                @Override
                public void close() throws IOException {
                    out.close();
                }
            };
        }

        @Override
        public void link(Path existing, Path name) throws IOException {
            count();
            files.link(existing, name);
        }

        @Override
        public void setModified(Path path, Instant modified) throws IOException {
            count();
            files.setModified(path, modified);
        }

        @Override
        public void syncDirectory(Path directory) throws IOException {
            count();
            files.syncDirectory(directory);
        }

        @Override
        public void move(Path from, Path to) throws IOException {
            count();
            files.move(from, to);
        }

        @Override
        public void delete(Path path) throws IOException {
            if (!Files.exists(path)) {
                return;
            }
            Map<String, Path> innermostFirst = new TreeMap<>(Comparator.reverseOrder());
            try (Stream<Path> all = Files.walk(path)) {
                all.forEach(entry -> innermostFirst.put(entry.toString(), entry));
            }
            for (Path entry : innermostFirst.values()) {
                count();
                files.delete(entry);
            }
        }

        @Override
        public long usableBytes(Path directory) throws IOException {
            return files.usableBytes(directory);
        }
    }
}
