package dev.nereid.server.control;

import dev.nereid.api.InferenceException;
import dev.nereid.repository.ModelDirectory;
import dev.nereid.repository.ModelFingerprint;
import dev.nereid.repository.config.ModelConfigReader;
import dev.nereid.spi.ErrorCode;
import inference.ModelConfig;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The configuration and files for the load of a model. Immutable.
 *
 * @param config a configuration that replaces the one in the directory; empty if none does
 * @param holder keeps the files
 * @param isOverridden whether a client sent the files
 */
record ModelSource(
        Optional<ModelConfigReader.Written> config, ModelFingerprint files, ModelFiles holder, boolean isOverridden) {
    ModelDirectory directory() {
        return holder.directory();
    }

    /** Returns the configuration in place of that in the directory; an empty one for that. */
    ModelConfig written() {
        return config.orElse(ModelConfigReader.Written.NONE).config();
    }

    /** Returns the size of the files of a version, in bytes. */
    long fileBytes(long version) {
        ModelFingerprint.TreeStamp stamp = files.versions().get(version);
        return stamp == null ? 0 : stamp.bytes();
    }

    String key() {
        return directory().key();
    }

    /** Begins the use of the files by a generation. The result ends it. */
    Runnable use() {
        holder.retain();
        return holder::release;
    }

    /** Ends the use by the load itself. */
    void release() {
        holder.release();
    }

    /** Returns the same files with another configuration. Takes over the use. */
    ModelSource with(Optional<ModelConfigReader.Written> other) {
        return new ModelSource(other, files, holder, isOverridden);
    }

    /** Returns the error of a model with a wrong configuration. */
    InferenceException pollFailed(String reason) {
        String text = "failed to load '" + directory().name() + "', failed to poll from model repository: " + reason;
        return config.isPresent()
                ? InferenceException.clientError(text)
                : new InferenceException(ErrorCode.INVALID_ARGUMENT, text);
    }

    /** The files that a model is loaded from, until nothing uses them. Lock-free; safe for use by any thread. */
    static final class ModelFiles {
        private final ModelDirectory directory;
        private final String origin;
        private final Runnable end;
        private final AtomicInteger uses = new AtomicInteger(1);

        /**
         * Creates the files of a load, in use by the caller.
         *
         * @param directory the directory that they lie in
         * @param origin where they come from: a path or URL, the same for copies of the same model
         * @param end removes the files, or their lease; called once
         */
        ModelFiles(ModelDirectory directory, String origin, Runnable end) {
            this.directory = directory;
            this.origin = origin;
            this.end = end;
        }

        ModelDirectory directory() {
            return directory;
        }

        String origin() {
            return origin;
        }

        /** Begins another use, while there is one. */
        void retain() {
            uses.incrementAndGet();
        }

        /** Ends a use. After the last one the files are released. */
        void release() {
            if (uses.decrementAndGet() == 0) {
                end.run();
            }
        }
    }
}
