package dev.nereid.repository.storage;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.repository.ModelCopy;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.storage.ModelStorage;
import dev.nereid.spi.storage.StoragePage;
import dev.nereid.spi.storage.StoredObject;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.assertj.core.api.AbstractThrowableAssert;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class RemoteRepositoryTest {
    private static final String URL = "fake://bucket/models";

    @TempDir
    private Path base;

    private final FakeStorage storage = new FakeStorage()
            .put("readme.txt", "beside the models")
            .put("a/config.pbtxt", "config of a")
            .put("a/1/model.bin", "first version")
            .put("a/2/model.bin", "second version")
            .put("b/1/", "");
    private final AtomicLong nanos = new AtomicLong();
    private final List<RemoteRepository> opened = new ArrayList<>();
    private RemoteRepository repository;

    @BeforeEach
    void openRepository() throws IOException {
        repository = open(storage, StorageLimits.DEFAULT);
    }

    @AfterEach
    void close() {
        opened.forEach(RemoteRepository::close);
    }

    private RemoteRepository open(FakeStorage from, StorageLimits limits) throws IOException {
        RemoteRepository remote = RemoteRepository.open(URL, from, base, new LocalFiles.Disk(), limits, nanos::get);
        opened.add(remote);
        return remote;
    }

    @Test
    void listsModelsWithoutCopyingThem() {
        assertThat(repository.scan()).containsOnlyKeys("a", "b");
        assertThat(storage.reads).isEmpty();
        assertThat(repository.location()).isEqualTo(URL);
    }

    @Test
    void copiesAModelAsItIs() throws IOException {
        ModelCopy copy = repository.fetch("a");

        assertThat(copy.directory().name()).isEqualTo("a");
        assertThat(contents(copy))
                .containsExactlyInAnyOrderEntriesOf(Map.of(
                        "config.pbtxt", "config of a",
                        "1/model.bin", "first version",
                        "2/model.bin", "second version"));
        assertThat(copy.directory().versions()).containsExactly(1L, 2L);
        assertThat(copy.fingerprint())
                .isEqualTo(repository.scan().get("a"))
                .isEqualTo(repository.fingerprint("a").get());
    }

    @Test
    void createsTheDirectoriesOfEmptyObjectsWithASlash() {
        assertThat(repository.fetch("b").directory().versions()).containsExactly(1L);
    }

    @Test
    void downloadsAModelOnce() {
        repository.fetch("a").close();
        int reads = storage.reads.size();

        Path first = repository.fetch("a").directory().path();

        assertThat(repository.fetch("a").directory().path()).isEqualTo(first);
        assertThat(storage.reads).hasSize(reads);
    }

    @Test
    void usesVerifiedCopiesOfAnEarlierStart() throws IOException {
        Map<String, String> before = contents(repository.fetch("a"));
        repository.close();
        storage.reads.clear();

        RemoteRepository restarted = open(storage, StorageLimits.DEFAULT);

        assertThat(contents(restarted.fetch("a"))).isEqualTo(before);
        assertThat(storage.reads).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(strings = {"changed", "shorter", "missing", "added", "link", "no manifest", "half a manifest"})
    void downloadsDamagedCopiesOfAnEarlierStartAgain(String damage) throws IOException {
        ModelCopy copy = repository.fetch("a");
        Map<String, String> before = contents(copy);
        Path file = copy.directory().path().resolve("1/model.bin");
        Path manifest = copy.directory().root().resolve("manifest");
        repository.close();
        switch (damage) {
            case "changed" -> Files.writeString(file, "fIrst version");
            case "shorter" -> Files.writeString(file, "first");
            case "missing" -> Files.delete(file);
            case "added" -> Files.writeString(file.resolveSibling("more"), "");
            case "link" -> {
                Path elsewhere = Files.copy(file, base.resolve("elsewhere"));
                Files.delete(file);
                Files.createSymbolicLink(file, elsewhere);
            }
            case "no manifest" -> Files.delete(manifest);
            case "half a manifest" -> {
                String text = Files.readString(manifest);
                Files.writeString(manifest, text.substring(0, text.length() / 2));
            }
            default -> throw new AssertionError(damage);
        }

        assertThat(contents(open(storage, StorageLimits.DEFAULT).fetch("a"))).isEqualTo(before);
    }

    @Test
    void deletesWhatAnEarlierStartLeftIncomplete() throws IOException {
        Path partial = Files.createDirectories(repository.directory().resolve("partial/17/a"));
        Files.writeString(partial.resolve("config.pbtxt"), "half");
        Path incomplete = Files.createDirectories(repository.directory().resolve("copies/0123/a"));
        repository.close();

        RemoteRepository restarted = open(storage, StorageLimits.DEFAULT);

        assertThat(restarted.directory()).isEqualTo(repository.directory());
        assertThat(partial).doesNotExist();
        assertThat(incomplete).doesNotExist();
    }

    @Test
    void downloadsOnlyWhatChanged() throws IOException {
        ModelCopy before = repository.fetch("a");
        Path firstVersion = before.directory().versionDirectory(1);
        storage.put("a/2/model.bin", "a newer second version");
        storage.reads.clear();

        ModelCopy after = repository.fetch("a");

        assertThat(storage.reads).containsExactly("a/2/model.bin");
        assertThat(after.fingerprint()).isNotEqualTo(before.fingerprint());
        assertThat(contents(after)).containsEntry("2/model.bin", "a newer second version");
        assertThat(contents(before)).as("the copy that is in use").containsEntry("2/model.bin", "second version");
        assertThat(modified(after.directory().versionDirectory(1))).isEqualTo(modified(firstVersion));
        assertThat(modified(after.directory().versionDirectory(2)))
                .isEqualTo(storage.object("a/2/model.bin").modified())
                .isEqualTo(modified(after.directory().path()));
    }

    @Test
    void downloadsOnlyWhatChangedSinceAnEarlierStart() throws IOException {
        repository.fetch("a");
        repository.close();
        storage.put("a/2/model.bin", "a newer second version");
        storage.reads.clear();

        ModelCopy after = open(storage, StorageLimits.DEFAULT).fetch("a");

        assertThat(storage.reads).containsExactly("a/2/model.bin");
        assertThat(contents(after)).hasSize(3).containsEntry("2/model.bin", "a newer second version");
    }

    @Test
    void anUploadOfTheSameContentChangesNothing() {
        String before = repository.fetch("a").fingerprint();
        storage.put("a/1/model.bin", "first version");
        storage.reads.clear();

        assertThat(repository.scan()).containsEntry("a", before);
        assertThat(repository.fetch("a").fingerprint()).isEqualTo(before);
        assertThat(storage.reads).isEmpty();
    }

    @Test
    void fingerprintsChangeWithNamesSizesAndEtags() {
        List<String> seen = new ArrayList<>(List.of(repository.fingerprint("a").orElseThrow()));
        storage.put("a/1/more", "");
        seen.add(repository.fingerprint("a").orElseThrow());
        storage.remove("a/1/more");
        storage.put("a/1/model.bin", "First version");
        seen.add(repository.fingerprint("a").orElseThrow());
        storage.remove("a/1/model.bin");
        seen.add(repository.fingerprint("a").orElseThrow());

        assertThat(seen).doesNotHaveDuplicates().allMatch(text -> text.matches("[0-9a-f]{32}"));
        assertThat(repository.fingerprint("missing")).isEmpty();
    }

    @Test
    void deletesACopyThatIsNeitherNewestNorLeased() {
        ModelCopy before = repository.fetch("a");
        storage.put("a/1/model.bin", "changed");
        ModelCopy after = repository.fetch("a");
        assertThat(before.directory().path()).exists();

        before.close();
        before.close();
        after.close();

        assertThat(before.directory().root()).doesNotExist();
        assertThat(after.directory().path())
                .as("the newest copy, for the next load")
                .exists();
    }

    @Test
    void deletesCopiesOfModelsThatAreGone() {
        ModelCopy a = repository.fetch("a");
        repository.fetch("b").close();

        repository.retain(Set.of());

        assertThat(a.directory().path()).as("in use").exists();
        assertThat(repository.directory().resolve("copies"))
                .isDirectoryContaining(path -> path.equals(a.directory().root()));
        assertThat(children(repository.directory().resolve("copies"))).hasSize(1);
        a.close();
        assertThat(children(repository.directory().resolve("copies"))).isEmpty();
        assertThat(children(repository.directory().resolve("partial"))).isEmpty();
    }

    @Test
    void readsAnObjectAgainWhenItsConnectionBreaks() throws IOException {
        storage.breakAfter = 4;
        storage.breaks.set(2);

        assertThat(contents(repository.fetch("a"))).containsEntry("1/model.bin", "first version");
    }

    @Test
    void failsWhenConnectionsBreakAgainAndAgain() {
        storage.breakAfter = 4;
        storage.breaks.set(3);

        assertThatFetchFails(repository, ErrorCode.UNAVAILABLE)
                .hasMessage("model repository 'fake://bucket/models': model 'a' cannot be copied: object"
                        + " 'a/1/model.bin': connection lost");
        assertThat(children(repository.directory().resolve("partial"))).isEmpty();
        assertThat(children(repository.directory().resolve("copies"))).isEmpty();

        assertThat(repository.fetch("a").directory().path()).exists();
    }

    @Test
    void copiesAgainWhatChangesMeanwhile() throws IOException {
        // Changed after it was read, as the second listing shows.
        storage.beforeRead = key -> {
            if (key.equals("a/config.pbtxt") && storage.reads.size() < 3) {
                storage.put("a/1/model.bin", "first version, changed");
            }
        };

        assertThat(contents(repository.fetch("a"))).containsEntry("1/model.bin", "first version, changed");
    }

    @Test
    void givesUpOnAModelThatKeepsChanging() {
        AtomicLong number = new AtomicLong();
        storage.beforeRead = key -> storage.put("a/0", "change " + number.incrementAndGet());

        assertThatFetchFails(repository, ErrorCode.UNAVAILABLE);
        assertThat(children(repository.directory().resolve("copies"))).isEmpty();
    }

    @Test
    void refusesObjectsThatAreLongerOrShorterThanListed() throws IOException {
        StoredObject listed = storage.object("a/1/model.bin");
        for (long size : new long[] {listed.size() - 1, listed.size() + 1}) {
            storage.list(new StoredObject(listed.key(), size, listed.etag(), listed.modified()));

            assertThatFetchFails(repository, ErrorCode.UNAVAILABLE).hasMessageContaining("expected: ");
        }
        assertThat(children(repository.directory().resolve("copies"))).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "a/../../escaped",
                "a/../b/escaped",
                "a//x",
                "a/1/..",
                "a/1/\u0000",
                "a/1/x\\..\\y",
                "a/1/model.bin/x",
            })
    void refusesAModelWithAHostileKey(String key) throws IOException {
        storage.put(key, "hostile");

        assertThatFetchFails(repository, ErrorCode.INVALID_ARGUMENT).hasMessageContaining("object 'a/");
        assertThat(storage.reads).isEmpty();
        try (Stream<Path> all = Files.walk(base)) {
            assertThat(all.map(path -> path.getFileName().toString())).doesNotContain("escaped", "x", "model.bin");
        }
        assertThat(repository.fetch("b").directory().path()).as("another model").exists();
    }

    @Test
    void ignoresDirectoriesThatCannotBeModels() {
        storage.put("../x", "1")
                .put("/x", "1")
                .put(".hidden/x", "1")
                .put("./x", "1")
                .put("a\nb/x", "1");

        assertThat(repository.scan()).containsOnlyKeys("a", "b");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", ".", "..", "../a", "a/1", "/a", "a\u0000", "a\\b"})
    void refusesNamesThatAreNoDirectories(String model) {
        assertThatThrownBy(() -> repository.fetch(model))
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
        assertThatThrownBy(() -> repository.fingerprint(model)).isInstanceOf(InferenceException.class);
        assertThat(storage.listings).hasValue(0);
    }

    @Test
    void reportsAModelThatIsNotThere() {
        assertThatThrownBy(() -> repository.fetch("c"))
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND));
    }

    @Test
    void aModelIsNotTakenForAnotherWithALongerName() throws IOException {
        storage.put("ab/1/x", "of ab");

        assertThat(contents(repository.fetch("a"))).doesNotContainValue("of ab");
    }

    @Test
    void refusesWhatExceedsALimit() throws IOException {
        StorageLimits files = new StorageLimits(100, 5, 1000, 0, 1, Duration.ofMinutes(1), 1);
        assertThatFetchFails(open(storage, files), ErrorCode.INVALID_ARGUMENT)
                .hasMessageContaining("more than 5 files and directories");

        StorageLimits bytes = new StorageLimits(100, 100, 30, 0, 1, Duration.ofMinutes(1), 1);
        assertThatFetchFails(open(storage, bytes), ErrorCode.INVALID_ARGUMENT)
                .hasMessageContaining("larger than 30 bytes");

        StorageLimits space = new StorageLimits(100, 100, 1000, Long.MAX_VALUE >> 1, 1, Duration.ofMinutes(1), 1);
        assertThatFetchFails(open(storage, space), ErrorCode.UNAVAILABLE).hasMessageContaining("no space for 38 bytes");

        StorageLimits objects = new StorageLimits(4, 100, 1000, 0, 1, Duration.ofMinutes(1), 1);
        RemoteRepository few = open(storage, objects);
        assertThatThrownBy(few::scan).hasMessageContaining("more than 4 objects");
        assertThat(storage.reads).isEmpty();
    }

    @Test
    void sizesThatOverflowExceedTheLimit() {
        storage.list(new StoredObject("a/x", Long.MAX_VALUE, "e", Instant.EPOCH));
        storage.list(new StoredObject("a/y", Long.MAX_VALUE, "e", Instant.EPOCH));

        assertThatFetchFails(repository, ErrorCode.INVALID_ARGUMENT).hasMessageContaining("larger than");
    }

    @Test
    void endsADownloadThatIsTooSlow() throws IOException {
        StorageLimits limits = new StorageLimits(100, 100, 1000, 0, 1, Duration.ofSeconds(10), 1);
        storage.beforeRead = key -> nanos.addAndGet(Duration.ofSeconds(5).toNanos());
        assertThat(contents(open(storage, limits).fetch("a"))).hasSize(3);

        storage.put("a/1/model.bin", "changed").beforeRead = key -> {};
        RemoteRepository slow = RemoteRepository.open(
                URL,
                storage,
                base,
                new LocalFiles.Disk(),
                limits,
                () -> nanos.addAndGet(Duration.ofSeconds(8).toNanos()));
        opened.add(slow);
        assertThatFetchFails(slow, ErrorCode.UNAVAILABLE).hasMessageContaining("too slow");
    }

    @Test
    void endsAListingThatDoesNotEnd() throws IOException {
        RemoteRepository remote = RemoteRepository.open(
                URL, new EndlessStorage(), base, new LocalFiles.Disk(), StorageLimits.DEFAULT, nanos::get);
        opened.add(remote);

        assertThatThrownBy(() -> remote.fetch("a")).hasMessageContaining("does not end the listing");
    }

    @Test
    void refusesKeysOutsideOfWhatWasListed() {
        RemoteRepository remote =
                repositoryOf(StoragePage.last(List.of(new StoredObject("b/config.pbtxt", 1, "e", Instant.EPOCH))));

        assertThatThrownBy(() -> remote.fetch("a")).hasMessageContaining("lists 'b/config.pbtxt' below 'a/'");
    }

    @Test
    void refusesKeysThatAreListedTwiceAndStrangeEtags() {
        StoredObject object = new StoredObject("a/x", 1, "e", Instant.EPOCH);
        RemoteRepository twice = repositoryOf(StoragePage.last(List.of(object, object)));
        assertThatThrownBy(() -> twice.fetch("a")).hasMessageContaining("listed twice");

        RemoteRepository tabs =
                repositoryOf(StoragePage.last(List.of(new StoredObject("a/x", 1, "e\tf", Instant.EPOCH))));
        assertThatThrownBy(() -> tabs.fetch("a")).hasMessageContaining("ETag");
    }

    @Test
    void serversThatShareADirectoryDoNotShareCopies() throws IOException {
        RemoteRepository other = open(storage, StorageLimits.DEFAULT);

        assertThat(other.directory()).isNotEqualTo(repository.directory());
        assertThat(contents(other.fetch("a"))).isEqualTo(contents(repository.fetch("a")));
    }

    @Test
    void copiesAreReadableByTheOwnerOnly() throws IOException {
        Path copy = repository.fetch("a").directory().root();

        for (Path directory : List.of(repository.directory(), copy)) {
            assertThat(PosixFilePermissions.toString(
                            Files.getPosixFilePermissions(directory, LinkOption.NOFOLLOW_LINKS)))
                    .isEqualTo("rwx------");
        }
    }

    @Test
    void fetchesOfOneModelAtOnceShareItsCopy() throws Exception {
        List<Future<ModelCopy>> fetches = new ArrayList<>();
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int i = 0; i < 16; i++) {
                fetches.add(threads.submit(() -> repository.fetch("a")));
            }
        }
        Set<Path> paths = new HashSet<>();
        for (Future<ModelCopy> fetch : fetches) {
            paths.add(fetch.get().directory().path());
        }
        assertThat(paths).hasSize(1);
        assertThat(children(repository.directory().resolve("partial"))).isEmpty();
    }

    @Test
    void closesTheStorage() {
        repository.close();

        assertThat(storage.closed).isTrue();
    }

    private RemoteRepository repositoryOf(StoragePage page) {
        try {
            RemoteRepository remote = RemoteRepository.open(
                    URL, new OnePage(page), base, new LocalFiles.Disk(), StorageLimits.DEFAULT, nanos::get);
            opened.add(remote);
            return remote;
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private static AbstractThrowableAssert<?, ?> assertThatFetchFails(RemoteRepository repository, ErrorCode code) {
        return assertThatThrownBy(() -> repository.fetch("a"))
                .isInstanceOfSatisfying(
                        InferenceException.class,
                        e -> assertThat(e.code()).as(e.publicMessage()).isEqualTo(code));
    }

    static Map<String, String> contents(ModelCopy copy) throws IOException {
        Map<String, String> contents = new TreeMap<>();
        Path directory = copy.directory().path();
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                contents.put(directory.relativize(file).toString(), Files.readString(file, UTF_8));
            }
        }
        return contents;
    }

    private static List<Path> children(Path directory) {
        try (Stream<Path> children = Files.list(directory)) {
            return children.toList();
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private static Instant modified(Path path) throws IOException {
        return Files.getLastModifiedTime(path).toInstant();
    }

    /** A storage whose listings have one page. Immutable. */
    private record OnePage(StoragePage page) implements ModelStorage {
        @Override
        public StoragePage list(String prefix, String continuation) {
            return page;
        }

        @Override
        public void read(StoredObject object, OutputStream content) {
            throw new BackendException(ErrorCode.INTERNAL, "not reached");
        }

        @Override
        public void close() {}
    }

    /** A storage whose listings have no end. Immutable. */
    private record EndlessStorage() implements ModelStorage {
        @Override
        public StoragePage list(String prefix, String continuation) {
            return new StoragePage(List.of(), "more");
        }

        @Override
        public void read(StoredObject object, OutputStream content) {
            throw new BackendException(ErrorCode.INTERNAL, "not reached");
        }

        @Override
        public void close() {}
    }
}
