package dev.nereid.backend.python.environment;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.testkit.FakeBackendContext;
import dev.nereid.testkit.FakeModelContext;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class OpenSettingsTest {
    @TempDir
    Path directory;

    @Test
    void hasAllThatAProcessNeeds() throws IOException {
        FakeBackendContext backend = Contexts.backend(directory, Map.of("inline-limit", "64"), Map.of());
        FakeModelContext model = Contexts.model(directory, "m")
                .withParameters(Map.of(
                        "DEBUG_PORT", "5678",
                        "LIMIT_MEMORY", "1G",
                        "LIMIT_PROCESSOR_SECONDS", "5",
                        "LIMIT_OPEN_FILES", "100"));
        Path file = Files.writeString(model.versionDirectory().resolve("model.py"), "");
        PythonSettings settings = PythonSettings.of(backend);

        Map<String, String> values = OpenSettings.of(
                        backend, model, ModelFile.of(model), settings, PythonParameters.of(model, settings))
                .forProcess("m_0_0", 15);

        Path prefix = Path.of(values.get("pycache_prefix"));
        assertThat(prefix).isDirectory().startsWith(backend.cacheDirectory());
        assertThat(values)
                .isEqualTo(Map.ofEntries(
                        Map.entry("model_file", file.toString()),
                        Map.entry("version_directory", model.versionDirectory().toString()),
                        Map.entry("model_name", "m"),
                        Map.entry("model_version", "1"),
                        Map.entry("instance_name", "m_0_0"),
                        Map.entry("module_name", "1.model"),
                        Map.entry("search_path", model.versionDirectory() + "\n" + model.modelDirectory()),
                        Map.entry("pycache_prefix", prefix.toString()),
                        Map.entry("inline_limit", "64"),
                        Map.entry("log_levels", "15"),
                        Map.entry("limit_memory", "1073741824"),
                        Map.entry("limit_processor_seconds", "5"),
                        Map.entry("limit_open_files", "100"),
                        Map.entry("debug_port", "5678")));
    }

    @Test
    void keepsByteCodeOfAModelInOneOfFewDirectories() throws IOException {
        ByteCodeCache cache = new ByteCodeCache(directory);
        Path first = cache.prefix(directory.resolve("first"));
        assertThat(cache.prefix(directory.resolve("first"))).isEqualTo(first);
        Files.setLastModifiedTime(first, FileTime.fromMillis(0));

        for (int i = 0; i < ByteCodeCache.MAX_DIRECTORIES; i++) {
            cache.prefix(directory.resolve("m" + i));
        }

        assertThat(first).doesNotExist();
        try (Stream<Path> all = Files.list(first.getParent())) {
            assertThat(all).hasSize(ByteCodeCache.MAX_DIRECTORIES);
        }
    }

    @Test
    void namesADirectoryForByteCodeThatCannotBeMade() throws IOException {
        Path file = Files.writeString(directory.resolve("file"), "");

        assertThat(new ByteCodeCache(file).prefix(directory)).startsWithRaw(file);
    }
}
