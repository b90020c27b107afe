package dev.nereid.repository;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class ModelRepositoryTest {
    @TempDir
    private Path root;

    @Test
    void listsDirectoriesByNameAndNothingElse() throws IOException {
        directories("b/1", "a/1", ".hidden/1");
        Files.writeString(root.resolve("README.md"), "not a model");

        ModelRepository.Scan scan = new ModelRepository(List.of(root), List.of(), false).scan();

        assertThat(scan.models()).extracting(ModelLocation::name).containsExactly("a", "b");
        assertThat(scan.duplicates()).isEmpty();
    }

    @Test
    void keepsModelsApartThatAppearTwice() throws IOException {
        directories("one/a/1", "one/b/1", "two/b/1", "two/c/1", "three/b/1");

        ModelRepository.Scan scan = new ModelRepository(
                        List.of(root.resolve("one"), root.resolve("two"), root.resolve("three")), List.of(), false)
                .scan();

        assertThat(scan.models()).extracting(ModelLocation::name).containsExactly("a", "c");
        assertThat(scan.duplicates()).containsExactly("b");
        assertThat(scan.models().getLast().fetch().directory().path()).isEqualTo(root.resolve("two/c"));
    }

    @Test
    void findsRemoteModelsWithoutCopies() throws IOException {
        directories("local/a/1", "local/b/1");
        FakeRoot remote = new FakeRoot(root.resolve("copies"), new TreeMap<>(Map.of("b", "1", "c", "2")));
        ModelRepository repository = new ModelRepository(List.of(root.resolve("local")), List.of(remote), false);

        ModelRepository.Scan scan = repository.scan();

        assertThat(scan.models()).extracting(ModelLocation::name).containsExactly("a", "c");
        assertThat(scan.duplicates()).containsExactly("b");
        assertThat(repository.find("b")).hasSize(2);
        assertThat(repository.find("c")).containsExactly(new ModelLocation.Remote(remote, "c", "2", "c"));
        assertThat(repository.find("d")).isEmpty();
        assertThat(remote.events).isEmpty();
        ModelCopy copy = repository.find("c").getFirst().fetch();
        assertThat(copy.directory().path()).isEqualTo(root.resolve("copies/2/c"));
        copy.close();
        repository.retain(Set.of("a", "c"));
        assertThat(remote.events).containsExactly("fetch c", "close c", "retain [a, c]");
    }

    /** A remote repository without files. */
    private record FakeRoot(Path directory, NavigableMap<String, String> scan, List<String> events)
            implements RepositoryRoot {
        FakeRoot(Path directory, NavigableMap<String, String> scan) {
            this(directory, scan, new ArrayList<>());
        }

        @Override
        public String location() {
            return "fake://box";
        }

        @Override
        public Optional<String> fingerprint(String model) {
            return Optional.ofNullable(scan.get(model));
        }

        @Override
        public ModelCopy fetch(String model) {
            String fingerprint = fingerprint(model).orElseThrow();
            events.add("fetch " + model);
            ModelDirectory copy = new ModelDirectory(directory.resolve(fingerprint), model);
            return new ModelCopy(copy, fingerprint, List.of(), () -> events.add("close " + model));
        }

        @Override
        public void retain(Iterable<String> models) {
            TreeSet<String> names = new TreeSet<>();
            models.forEach(names::add);
            events.add("retain " + names);
        }
    }

    @Test
    void reportsARepositoryThatIsGone() {
        Path missing = root.resolve("missing");

        ModelRepository repository = new ModelRepository(List.of(missing), List.of(), false);
        String reason = "model repository: cannot list missing: no such directory";

        assertThatThrownBy(repository::scanLocal)
                .isInstanceOf(InferenceException.class)
                .hasMessage(reason);
        assertThatThrownBy(() -> repository.find("m")).hasMessage(reason);
        assertThat(repository.scan().unreachable()).containsEntry(missing.toString(), reason);
    }

    @Test
    void takesWholeNumbersForVersions() throws IOException {
        directories("m/1", "m/10", "m/2", "m/0", "m/01", "m/3abc", "m/-4", "m/warmup", "m/initial_state", "m/configs");
        directories("m/99999999999999999999", "m/.5");
        Files.writeString(root.resolve("m/7"), "a file");

        assertThat(model("m").versions()).containsExactly(0L, 1L, 2L, 10L);
    }

    @Test
    void listsTheFilesOfTheFirstVersionByText() throws IOException {
        directories("m/10/model.savedmodel", "m/2");
        Files.writeString(root.resolve("m/10/model.onnx"), "");
        Files.writeString(root.resolve("m/2/model.plan"), "");

        assertThat(model("m").firstVersionEntries()).containsExactly("model.onnx", "model.savedmodel/");
    }

    @Test
    void findsNoFilesWithoutAVersion() throws IOException {
        directories("m/warmup");

        assertThat(model("m").firstVersionEntries()).isEmpty();
    }

    @Test
    void prefersTheNamedConfiguration() throws IOException {
        directories("m/configs");
        assertThat(model("m").configFile("")).isEmpty();

        Files.writeString(root.resolve("m/config.pbtxt"), "");
        Files.writeString(root.resolve("m/configs/fast.pbtxt"), "");

        assertThat(model("m").configFile("")).contains(root.resolve("m/config.pbtxt"));
        assertThat(model("m").configFile("fast")).contains(root.resolve("m/configs/fast.pbtxt"));
        assertThat(model("m").configFile("other")).contains(root.resolve("m/config.pbtxt"));
    }

    private ModelDirectory model(String name) {
        return new ModelDirectory(root, name);
    }

    private void directories(String... names) throws IOException {
        for (String name : names) {
            Files.createDirectories(root.resolve(name));
        }
    }
}
