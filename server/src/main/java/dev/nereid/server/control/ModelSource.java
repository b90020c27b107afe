package dev.nereid.server.control;

import dev.nereid.api.InferenceException;
import dev.nereid.repository.ModelDirectory;
import dev.nereid.repository.ModelFingerprint;
import dev.nereid.repository.config.ModelConfigReader;
import dev.nereid.spi.ErrorCode;
import inference.ModelConfig;
import java.util.Optional;

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
}
