package dev.nereid.server.lifecycle;

import dev.nereid.api.InferenceException;
import dev.nereid.repository.ModelFingerprint;
import inference.ModelConfig;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
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
}
