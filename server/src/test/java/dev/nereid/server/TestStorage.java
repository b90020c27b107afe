package dev.nereid.server;

import static java.util.Objects.requireNonNullElse;

import dev.nereid.plugin.PluginJar;
import dev.nereid.repository.storage.StorageLimits;
import dev.nereid.repository.storage.StorageOptions;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A remote storage whose objects are the files of a directory, in a plugin of its own. It is down while a file {@code
 * down} lies beside the directory, and does not respond while a file {@code silent} does.
 */
final class TestStorage {
    static final String URL = "disk://models";

    private static final String SOURCE = """
            package disk;

            import dev.nereid.spi.*;
            import dev.nereid.spi.storage.*;
            import java.io.*;
            import java.nio.file.*;
            import java.time.Instant;
            import java.util.*;

            public final class Disk implements StorageProvider {
                public String scheme() {
                    return "disk";
                }

                public ModelStorage open(StorageContext context) {
                    Path root = Path.of(context.environment().get("DISK"));
                    return new ModelStorage() {
                        private void check() {
                            Path silent = root.resolveSibling("silent");
                            try (WatchService watch = silent.getFileSystem().newWatchService()) {
                                silent.getParent().register(watch, StandardWatchEventKinds.ENTRY_DELETE);
                                while (Files.exists(silent)) {
                                    watch.poll(20, java.util.concurrent.TimeUnit.MILLISECONDS);
                                }
                            } catch (IOException | InterruptedException e) {
                                throw new BackendException(ErrorCode.UNAVAILABLE, "interrupted");
                            }
                            if (Files.exists(root.resolveSibling("down"))) {
                                throw new BackendException(ErrorCode.UNAVAILABLE, "the disk is down");
                            }
                        }

                        public StoragePage list(String prefix, String continuation) {
                            check();
                            note("lists", prefix);
                            List<StoredObject> objects = new ArrayList<>();
                            try (var files = Files.walk(root)) {
                                for (Path file : files.filter(Files::isRegularFile).sorted().toList()) {
                                    String key = root.relativize(file).toString();
                                    if (key.startsWith(prefix)) {
                                        byte[] content = Files.readAllBytes(file);
                                        objects.add(new StoredObject(
                                                key, content.length, "e" + Arrays.hashCode(content),
                                                Files.getLastModifiedTime(file).toInstant()));
                                    }
                                }
                            } catch (IOException e) {
                                throw new BackendException(ErrorCode.UNAVAILABLE, "not readable", e);
                            }
                            return StoragePage.last(objects);
                        }

                        public void read(StoredObject object, OutputStream content) {
                            check();
                            note("reads", object.key());
                            try {
                                content.write(Files.readAllBytes(root.resolve(object.key())));
                            } catch (IOException e) {
                                throw new BackendException(ErrorCode.UNAVAILABLE, "not readable", e);
                            }
                        }

                        private void note(String file, String line) {
                            try {
                                Files.writeString(root.resolveSibling(file), line + "\\n",
                                        StandardOpenOption.APPEND); // fails when the test has deleted it
                            } catch (IOException e) {
                                throw new BackendException(ErrorCode.UNAVAILABLE, "not writable", e);
                            }
                        }

                        public void close() {}
                    };
                }
            }
            """;

    private final Path directory;
    private final Path root;

    /** How many lines of each file were returned. */
    private final Map<String, Integer> taken = new HashMap<>();

    /** Creates a storage in a directory that is used for nothing else. */
    TestStorage(Path directory) throws IOException {
        this.directory = directory;
        root = Files.createDirectories(directory.resolve("objects"));
        Files.createFile(directory.resolve("lists"));
        Files.createFile(directory.resolve("reads"));
        Path plugins = Files.createDirectories(directory.resolve("storages"));
        PluginJar.of(SOURCE)
                .entry("META-INF/services/dev.nereid.spi.storage.StorageProvider", "disk.Disk")
                .write(plugins.resolve("disk.jar"));
    }

    /** Returns options of a server that serves the objects beside its local models. */
    ServerOptions addTo(ServerOptions options) {
        return options.with(o -> o.remote = new StorageOptions(
                List.of(URL),
                List.of(directory.resolve("storages")),
                Map.of("DISK", root.toString()),
                directory.resolve("copies"),
                StorageLimits.DEFAULT));
    }

    /** Returns the objects as models. */
    TestModels models() {
        return new TestModels(root);
    }

    TestStorage put(String key, String content) throws IOException {
        Path file = root.resolve(key);
        Files.createDirectories(file.getParent());
        Files.writeString(file, content);
        return this;
    }

    /** Makes requests fail, or remain without a response, from now on. */
    void set(String state) throws IOException {
        Files.createFile(directory.resolve(state));
    }

    void clear(String state) throws IOException {
        Files.delete(directory.resolve(state));
    }

    /** Returns the keys of the objects that were read since the last call. */
    List<String> reads() {
        return take("reads");
    }

    /** Returns the prefixes of the objects that were listed since the last call. */
    List<String> lists() {
        return take("lists");
    }

    /** Returns the new lines of a file, which the plugin appends to meanwhile: nothing of it is deleted. */
    private List<String> take(String name) {
        Path file = directory.resolve(name);
        try {
            String text = Files.readString(file);
            List<String> lines =
                    text.substring(0, text.lastIndexOf('\n') + 1).lines().toList();
            int before = requireNonNullElse(taken.put(name, lines.size()), 0);
            return lines.subList(before, lines.size()).stream().sorted().toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
