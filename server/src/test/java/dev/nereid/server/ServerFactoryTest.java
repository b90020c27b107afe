package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.plugin.BackendRegistry;
import dev.nereid.plugin.PluginJar;
import dev.nereid.plugin.cache.CacheOptions;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class ServerFactoryTest {
    /** A cache that writes a line to the file of its setting {@code events} when it is opened and closed. */
    private static final String CACHE = """
            package recording;

            import dev.nereid.spi.cache.*;
            import java.io.IOException;
            import java.lang.foreign.MemorySegment;
            import java.nio.file.*;

            public final class RecordingCache implements CacheProvider {
                public String name() {
                    return "recording";
                }

                public ResponseCache create(CacheContext context) {
                    Path events = Path.of(context.settings().get("events"));
                    add(events, "open");
                    return new ResponseCache() {
                        public void lookup(CacheKey key, LookupObserver observer) {
                            observer.missing();
                        }

                        public void insert(CacheKey key, MemorySegment content, InsertObserver observer) {
                            observer.refused();
                        }

                        public void close() {
                            add(events, "close");
                        }
                    };
                }

                private static void add(Path events, String line) {
                    try {
                        Files.writeString(events, line + "\\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
                    } catch (IOException e) {
                        throw new IllegalStateException(e);
                    }
                }
            }
            """;

    @TempDir
    private Path directory;

    @Test
    void closesTheCacheIfTheBackendsCannotBeOpened() throws IOException {
        Path events = directory.resolve("events");
        Path caches = directory.resolve("caches");
        PluginJar.of(CACHE)
                .entry("META-INF/services/dev.nereid.spi.cache.CacheProvider", "recording.RecordingCache")
                .write(caches.resolve("recording.jar"));
        CacheOptions cache = new CacheOptions("recording", Map.of("events", events.toString()), List.of(caches));
        ServerOptions options;
        try (FileSystem unreadable =
                FileSystems.newFileSystem(directory.resolve("plugins.zip"), Map.of("create", "true"))) {
            options = ServerOptions.of(Files.createDirectories(directory.resolve("models")))
                    .withPlugins(unreadable.getPath("/"))
                    .with(o -> o.cache = Optional.of(cache));
        }

        // The list of a directory of a closed file system fails with an unchecked exception.
        assertThatThrownBy(() -> new ServerFactory(options).start())
                .isInstanceOf(RuntimeException.class)
                .hasStackTraceContaining(BackendRegistry.class.getName());

        assertThat(events).hasContent("open\nclose");
    }
}
