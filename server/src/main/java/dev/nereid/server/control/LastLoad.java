package dev.nereid.server.control;

import dev.nereid.server.lifecycle.PreparedModel;
import inference.ModelConfig;

/**
 * The configuration, files and plugin of a model's last load. Immutable.
 *
 * @param config its configuration before its backend was involved
 * @param hasMaxBatchSize whether {@code max_batch_size} was written, also as 0
 * @param plugin the digest of the plugin of its backend
 */
record LastLoad(ModelConfig config, boolean hasMaxBatchSize, ModelSource source, String plugin) {
    /** Returns whether a source has the same files and the same configuration. */
    boolean isFrom(ModelSource other) {
        return hasSameOrigin(other)
                && source.files().equals(other.files())
                && source.config().equals(other.config());
    }

    private boolean hasSameOrigin(ModelSource other) {
        return source.key().equals(other.key())
                && source.holder().origin().equals(other.holder().origin());
    }

    /** Returns whether a version has the same files, configuration aside. */
    boolean hasSameFiles(long version, ModelSource other) {
        return hasSameOrigin(other) && other.files().hasSameFiles(version, source.files());
    }

    /**
     * Returns whether a model is configured as before, instance groups and version policy aside. A completed
     * configuration counts like the written one, since clients load configurations that they have read.
     *
     * @param completed the configuration that serves
     */
    boolean differsInInstancesAlone(PreparedModel now, ModelConfig completed) {
        ModelConfig other = withoutInstances(now.config());
        boolean isAsWritten = now.hasMaxBatchSize() == hasMaxBatchSize
                && withoutInstances(config).equals(other);
        boolean isAsCompleted = (now.hasMaxBatchSize() || now.config().getMaxBatchSize() > 0)
                && withoutInstances(completed).equals(other);
        return isAsWritten || isAsCompleted;
    }

    private static ModelConfig withoutInstances(ModelConfig config) {
        return config.toBuilder().clearInstanceGroup().clearVersionPolicy().build();
    }
}
