package dev.nereid.server.lifecycle;

import com.google.protobuf.CodedOutputStream;
import dev.nereid.api.InferenceException;
import dev.nereid.api.file.ServerPaths;
import dev.nereid.repository.ModelDirectory;
import dev.nereid.repository.ModelFingerprint;
import dev.nereid.spi.ErrorCode;
import inference.ModelConfig;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.FileVisitOption;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The identity of a version by its configuration, plugin and files. Safe for use by any thread.
 *
 * <p>Files are read when the identity is first needed, perhaps long after the load. If they have changed since, they
 * say nothing about the loaded model, and the identity is a random one.
 */
public final class FileIdentity implements LoadIdentity {
    private static final Logger LOG = LoggerFactory.getLogger(FileIdentity.class);

    private final PreparedModel prepared;
    private final ModelConfig config;
    private final String plugin;
    private final long version;
    private final ModelFingerprint loaded;
    private final AtomicBoolean asked = new AtomicBoolean();
    private final ReentrantLock lock = new ReentrantLock();
    private volatile Optional<String> known = Optional.empty();

    /**
     * Records the fingerprint of the files that are about to be loaded. Blocks.
     *
     * @param config the completed configuration
     * @param plugin the digest of the plugin that loads it; empty for none
     */
    public FileIdentity(PreparedModel prepared, ModelConfig config, String plugin, long version) {
        this.prepared = prepared;
        this.config = config;
        this.plugin = plugin;
        this.version = version;
        loaded = fingerprint();
    }

    private ModelFingerprint fingerprint() {
        try {
            return ModelFingerprint.of(prepared.directory(), Optional.empty());
        } catch (InferenceException e) {
            return ModelFingerprint.UNREADABLE;
        }
    }

    @Override
    public Optional<String> known() {
        return known;
    }

    @Override
    public void computeOn(Executor executor) {
        if (known.isEmpty() && asked.compareAndSet(false, true)) {
            try {
                executor.execute(this::tryCompute);
            } catch (RejectedExecutionException e) { // the server is stopping
                LOG.atDebug().setCause(e).log("identity of a model not computed");
            }
        }
    }

    private void tryCompute() {
        try {
            compute();
        } catch (InferenceException e) { // its files are gone: nothing that depends on it is cached
            LOG.atWarn()
                    .addKeyValue("model", prepared.directory().name())
                    .addKeyValue("version", version)
                    .log(
                            "responses of ensembles with it are not cached: {} (model '{}', version {})",
                            e.publicMessage(),
                            prepared.directory().name(),
                            version);
        }
    }

    @Override
    public void compute() {
        lock.lock();
        try {
            if (known.isEmpty()) {
                known = Optional.of(content());
            }
        } finally {
            lock.unlock();
        }
    }

    private String content() {
        boolean isUnchanged = isUnchanged();
        String content = isUnchanged ? LoadId.of(config, plugin, prepared.directory(), version) : "";
        if (!isUnchanged || !isUnchanged()) {
            return "load " + UUID.randomUUID();
        }
        return prepared.forcedLoad().isEmpty() ? content : content + ":" + prepared.forcedLoad();
    }

    private boolean isUnchanged() {
        return fingerprint().hasSameFiles(version, loaded);
    }

    /**
     * Computes the identity of a version's files and configuration, for keys of cached responses. Static functions only;
     * blocks.
     *
     * <p>Content decides, and not the time of the load, so that servers which share a cache share responses, and a reload of
     * unchanged files keeps them. A forced reload does not: {@link PreparedModel#forcedLoad}.
     */
    static final class LoadId {
        private static final int CHUNK = 1 << 20;

        private LoadId() {}

        /**
         * Computes the identity of a version. Reads its files, which takes about a second for a gigabyte.
         *
         * @param config its completed configuration
         * @param plugin the digest of the plugin that loads it
         * @return a text, equal for equal configurations, plugins and files; files of other versions do not count
         * @throws InferenceException if the files cannot be read
         */
        static String of(ModelConfig config, String plugin, ModelDirectory directory, long version) {
            MessageDigest digest = sha256();
            try {
                add(
                        digest,
                        bytes(config.toBuilder()
                                .clearInstanceGroup()
                                .clearVersionPolicy()
                                .build()));
                add(digest, plugin.getBytes(StandardCharsets.UTF_8));
                for (Path file : files(directory, version)) {
                    add(digest, directory.path().relativize(file).toString().getBytes(StandardCharsets.UTF_8));
                    addContent(digest, file);
                }
            } catch (IOException | UncheckedIOException e) {
                throw new InferenceException(
                        ErrorCode.INTERNAL,
                        "model '" + directory.name() + "': cannot read its files for the response cache: "
                                + ServerPaths.reason(e));
            }
            return HexFormat.of().formatHex(digest.digest());
        }

        /** Returns the same bytes for equal configurations, whatever the order of their maps. */
        private static byte[] bytes(ModelConfig config) throws IOException {
            byte[] bytes = new byte[config.getSerializedSize()];
            CodedOutputStream target = CodedOutputStream.newInstance(bytes);
            target.useDeterministicSerialization();
            config.writeTo(target);
            return bytes;
        }

        private static List<Path> files(ModelDirectory directory, long version) throws IOException {
            List<Path> others = Stream.concat(
                            Stream.of("config.pbtxt", "configs")
                                    .map(directory.path()::resolve), // part of the configuration
                            directory.versions().stream()
                                    .filter(other -> other != version)
                                    .map(directory::versionDirectory))
                    .toList();
            List<Path> files = new ArrayList<>();
            try (DirectoryStream<Path> entries = Files.newDirectoryStream(directory.path())) {
                for (Path entry : entries) {
                    boolean isOfVolume = String.valueOf(entry.getFileName()).startsWith(".."); // what links lead to
                    if (!isOfVolume && !others.contains(entry)) {
                        addFiles(entry, files);
                    }
                }
            }
            files.sort(null);
            return files;
        }

        /** Adds the files below a directory, including targets of links. */
        private static void addFiles(Path root, List<Path> files) throws IOException {
            try (Stream<Path> all = Files.walk(root, FileVisitOption.FOLLOW_LINKS)) {
                all.filter(Files::isRegularFile).forEach(files::add);
            }
        }

        private static void addContent(MessageDigest digest, Path file) throws IOException {
            long size = 0;
            byte[] chunk = new byte[CHUNK];
            try (InputStream content = Files.newInputStream(file)) {
                for (int read = content.read(chunk); read >= 0; read = content.read(chunk)) {
                    digest.update(chunk, 0, read);
                    size += read;
                }
            }
            add(digest, Long.toString(size).getBytes(StandardCharsets.UTF_8));
        }

        /** Adds bytes after their number, so that different parts never look alike. */
        private static void add(MessageDigest digest, byte[] bytes) {
            digest.update((bytes.length + ":").getBytes(StandardCharsets.UTF_8));
            digest.update(bytes);
        }

        private static MessageDigest sha256() {
            try {
                return MessageDigest.getInstance("SHA-256");
            } catch (NoSuchAlgorithmException e) {
                throw new IllegalStateException("every Java platform has SHA-256", e);
            }
        }
    }
}
