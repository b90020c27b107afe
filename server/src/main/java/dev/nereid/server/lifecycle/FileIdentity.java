package dev.nereid.server.lifecycle;

import dev.nereid.api.InferenceException;
import dev.nereid.server.repository.ModelFingerprint;
import inference.ModelConfig;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The identity of a version by its configuration, plugin and files. Safe for use by any thread.
 *
 * <p>Files are read when the identity is first needed, perhaps long after the load. If they have changed since, they say
 * nothing about what was loaded, and the identity is a random one.
 */
public final class FileIdentity implements LoadIdentity {
    private final PreparedModel prepared;
    private final ModelConfig config;
    private final String plugin;
    private final long version;
    private final ModelFingerprint loaded;
    private final ReentrantLock lock = new ReentrantLock();
    private volatile Optional<String> known = Optional.empty();

    /**
     * Takes note of the files that are about to be loaded. Blocks.
     *
     * @param prepared the model
     * @param config the completed configuration
     * @param plugin the digest of the plugin that loads it; empty for none
     * @param version the version
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
}
